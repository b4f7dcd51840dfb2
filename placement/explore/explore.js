// State of the page, questions to the server, answers drawn. All markup in answers is made and
// escaped by the server; names go into the page as text only.
import { ask } from "./connection.js";
import { connectPanels } from "./panels.js";
import { STATUS, duration, moves, progressWords, signed } from "./words.js";

const root = document.documentElement;
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const lane = Array.from(crypto.getRandomValues(new Uint32Array(2))).join("-");
const PATIENCE = 150;  // ms that a running question keeps its turn when the next one is ready
const SITE_LISTS = { pinned: "problem", pinned_voters: "problem", forbidden: "problem", lost: "" };

function fresh() {
  const most = data.sites.length;
  return { problem: { replicas: Math.min(5, most), voters: Math.min(3, most) } };
}
let state = fresh();
let chosen = "";         // site whose rules the toolbar changes
let adding = false;
let last = null;         // answer that is shown
const counts = { asked: 0, drawn: 0 };

// --- the question -----------------------------------------------------------------------------
let running = null;      // {controller, timer}
let dirty = false;

function changed() {
  counts.asked += 1;
  root.dataset.asked = counts.asked;
  remember();
  if (!running) { send(); return; }
  dirty = true;
  if (!running.timer) { running.timer = setTimeout(() => running && running.controller.abort(), PATIENCE); }
}

async function send() {
  const number = counts.asked, asked = JSON.parse(JSON.stringify(state));
  const started = performance.now();
  const turn = running = { controller: new AbortController(), timer: 0 };
  stopExtras();
  dirty = false;
  const slow = setTimeout(() => status("wait", "searching …"), 300);
  try {
    const answer = await ask("plan", { question: asked }, lane, turn.controller.signal, (report) => {
      status("wait", "searching: " + progressWords(report));
    });
    if (answer) { draw(answer, asked, number, started); }
  } catch (error) {
    if (error.name !== "AbortError") { failed(error.message, number); }
  } finally {
    clearTimeout(slow);
    clearTimeout(turn.timer);
    running = null;
    if (dirty) { send(); } else { extras(); }
  }
}

function status(kind, words) {
  $("status").className = "badge " + kind;
  $("status").textContent = words;
}

function failed(message, number) {
  status("wait", "not answered");
  $("problem").textContent = message;
  $("took").textContent = "";
  shown(number);
}

function shown(number) {
  counts.drawn = number;
  root.dataset.drawn = number;
}

// --- an answer --------------------------------------------------------------------------------
const map = document.querySelector("svg.map");

function draw(answer, asked, number, started) {
  $("problem").textContent = "";
  status(answer.status, STATUS[answer.status] || answer.status);
  $("took").textContent = answer.question + " · search " + duration(answer.seconds);
  for (const [layer, content] of Object.entries(answer.html.map)) {
    map.querySelector("g." + layer).innerHTML = content;
  }
  for (const panel of ["facts", "table", "clients"]) { $(panel).innerHTML = answer.html[panel]; }
  difference(last, answer);
  $("command").textContent = answer.command;
  $("cannot").textContent = answer.cannot.length
    ? "The command line has no option for " + answer.cannot.join(", ") + ": use the Python lines." : "";
  $("python").textContent = answer.python;
  answer.asked = asked;
  last = answer;
  marks();
  const mark = chosen && map.querySelector(".sites .chosen");
  $("story").textContent = mark ? mark.dataset.story : "";
  shown(number);
  requestAnimationFrame(() => {
    setTimeout(() => { root.dataset.milliseconds = (performance.now() - started).toFixed(1); }, 0);
  });
}

function difference(before, after) {
  const line = $("difference");
  if (!before || before.mean_latency_ms === null || after.mean_latency_ms === null) { line.textContent = ""; return; }
  const parts = [], slower = after.mean_latency_ms - before.mean_latency_ms;
  if (Math.abs(slower) >= 0.005) { parts.push(signed(slower, "ms", 2)); }
  if (after.cost !== null && before.cost !== null && Math.abs(after.cost - before.cost) >= 0.005) {
    parts.push(signed(after.cost - before.cost, after.currency, 2));
  }
  const words = moves(before, after);
  line.textContent = parts.length || words
    ? "Against the plan before: " + (parts.join(", ") || "same latency") + (words ? ": " + words : "")
    : "The plan before stays.";
}

// --- the map ----------------------------------------------------------------------------------
function siteNames() { return data.sites.concat((state.sites || []).map((site) => site.name)); }

function marks() {
  const names = siteNames();
  const lists = state.problem;
  const set = (list) => new Set(list || []);
  const forbidden = set(lists.forbidden), lost = set(state.lost);
  const ruled = new Set([...(lists.pinned || []), ...(lists.pinned_voters || []), lists.leader]);
  let first = true;
  map.querySelectorAll(".sites [data-index]").forEach((mark) => {
    const name = names[Number(mark.dataset.index)];
    mark.classList.toggle("chosen", name === chosen);
    mark.classList.toggle("forbidden", forbidden.has(name));
    mark.classList.toggle("lost", lost.has(name));
    mark.classList.toggle("ruled", ruled.has(name));
    mark.setAttribute("role", "button");
    mark.setAttribute("aria-pressed", String(name === chosen));
    mark.setAttribute("aria-label", mark.dataset.story);
    mark.setAttribute("tabindex", (chosen ? name === chosen : first) ? "0" : "-1");
    first = false;
  });
  toolbar();
}

function choose(name, focus) {
  chosen = name;
  marks();
  $("site").value = name;
  if (focus) {
    const mark = map.querySelector('.sites [data-index="' + siteNames().indexOf(name) + '"]');
    if (mark) { mark.focus(); }
  }
  extras();
}

map.addEventListener("click", (event) => {
  if (adding) { addSite(event); return; }
  const mark = event.target.closest("[data-index]");
  if (mark) { choose(siteNames()[Number(mark.dataset.index)], true); return; }
  const client = event.target.closest("[data-client]");
  if (client) {
    $("demand-of").value = "client " + client.dataset.client;
    $("demand-of").dispatchEvent(new Event("change"));
  }
});
map.addEventListener("keydown", (event) => {
  const mark = event.target.closest("[data-index]");
  if (!mark) { return; }
  const names = siteNames(), at = Number(mark.dataset.index);
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (step) { choose(names[(at + step + names.length) % names.length], true); event.preventDefault(); }
  if (event.key === "Enter" || event.key === " ") { choose(names[at], true); event.preventDefault(); }
});
for (const kind of ["mouseover", "focusin"]) {
  map.addEventListener(kind, (event) => {
    const mark = event.target.closest("[data-story]");
    if (mark) { $("story").textContent = mark.dataset.story; }
  });
}
$("reads").addEventListener("change", () => map.classList.toggle("show-reads", $("reads").checked));

async function addSite(event) {
  const box = map.getBoundingClientRect(), view = map.viewBox.baseVal;
  const point = { x: (event.clientX - box.left) / box.width * view.width,
                  y: (event.clientY - box.top) / box.height * view.height };
  setAdding(false);
  try {
    const place = await ask("place", point, lane + "-place");
    if (!place) { return; }
    let number = 1;
    while (siteNames().includes("New site " + number)) { number += 1; }
    const name = "New site " + number;
    state.sites = (state.sites || []).concat([{ name, lat: place.lat, lon: place.lon }]);
    fill();
    choose(name);
    changed();
  } catch (error) { $("problem").textContent = error.message; }
}

function setAdding(on) {
  adding = on;
  $("add").setAttribute("aria-pressed", String(on));
  map.classList.toggle("adding", on);
}
$("add").addEventListener("click", () => {
  const own = (state.sites || []).findIndex((site) => site.name === chosen);
  if (own < 0) { setAdding(!adding); return; }
  const name = chosen;
  state.sites.splice(own, 1);
  if (!state.sites.length) { delete state.sites; }
  for (const rule of Object.keys(SITE_LISTS)) { drop(rule, name); }
  if (state.problem.leader === name) { delete state.problem.leader; }
  chosen = "";
  fill();
  changed();
});

// --- rules of a site --------------------------------------------------------------------------
const ruleButtons = Array.from(document.querySelectorAll("[data-rule]"));

function listOf(rule) { return (SITE_LISTS[rule] ? state.problem : state)[rule] || []; }
function drop(rule, name) {
  const home = SITE_LISTS[rule] ? state.problem : state;
  const rest = (home[rule] || []).filter((other) => other !== name);
  if (rest.length) { home[rule] = rest; } else { delete home[rule]; }
}
function has(rule, name) {
  return rule === "leader" ? state.problem.leader === name : listOf(rule).includes(name);
}

function toolbar() {
  ruleButtons.forEach((button) => {
    button.disabled = !chosen;
    button.setAttribute("aria-pressed", String(Boolean(chosen) && has(button.dataset.rule, chosen)));
  });
  const own = (state.sites || []).some((site) => site.name === chosen);
  $("add").textContent = own ? "Remove this site" : "Add a site";
  $("add").disabled = data.prices && !own;
}

ruleButtons.forEach((button) => button.addEventListener("click", () => {
  const rule = button.dataset.rule;
  const on = !has(rule, chosen);
  if (rule === "leader") {
    if (on) { state.problem.leader = chosen; } else { delete state.problem.leader; }
  } else {
    drop(rule, chosen);
    if (on) { (SITE_LISTS[rule] ? state.problem : state)[rule] = listOf(rule).concat([chosen]); }
  }
  if (on && rule === "forbidden") {
    drop("pinned", chosen); drop("pinned_voters", chosen);
    if (state.problem.leader === chosen) { delete state.problem.leader; }
  } else if (on && rule !== "lost") { drop("forbidden", chosen); }
  marks();
  changed();
}));
$("site").addEventListener("change", () => choose($("site").value));

// --- fields -----------------------------------------------------------------------------------
// Fields that hold a key of the question say which: "problem.quorum". An empty one leaves it out.
const keyed = Array.from(document.querySelectorAll("[data-key]"));
function placeOf(field) {
  const key = field.dataset.key.split(".").pop();
  return [field.dataset.key === key ? state : state.problem, key];
}
keyed.forEach((field) => field.addEventListener("input", () => {
  const [home, key] = placeOf(field);
  const value = field.type === "number" ? field.valueAsNumber : field.value;
  if (value !== "" && !Number.isNaN(value)) { home[key] = value; } else if (field.required) { return; } else { delete home[key]; }
  changed();
}));
$("minimise").addEventListener("change", () => {
  state.minimise = $("minimise").value.trim() || undefined;
  fill();
  changed();
});
$("limits").addEventListener("change", () => {
  const limits = $("limits").value.split("\n").map((line) => line.trim()).filter(Boolean);
  state.keep = limits.length ? limits : undefined;
  fill();
  changed();
});
// whether a measure needs distributions of RTTs
function late() {
  const texts = [state.minimise || "", ...(state.keep || [])];
  return state.percentile !== undefined || texts.some((text) => /^\s*(p\d|within)/.test(text));
}
$("goal").addEventListener("change", () => {
  if ($("goal").value === "percentile") { state.percentile = 99; state.spread = data.spread; } else {
    delete state.percentile; delete state.spread;
  }
  fill();
  changed();
});
if ($("interval")) {
  $("interval").addEventListener("input", () => {
    const at = Number($("interval").value);
    if (at) { state.interval = data.intervals[at - 1]; } else { delete state.interval; }
    intervalWords();
    changed();
  });
}
function intervalWords() {
  if (!$("interval")) { return; }
  const words = state.interval || "all hours";
  $("interval").setAttribute("aria-valuetext", words);
  $("interval-field").querySelector("label").textContent = "Hour of day: " + words;
}

// moves from the configuration that runs today
$("runs").addEventListener("click", () => {
  if (state.problem.current) { delete state.problem.current; delete state.problem.moves; }
  else if (last && last.leader) {
    state.problem.current = { leader: last.leader, voters: last.voters, replicas: last.replicas };
  } else { return; }
  fill();
  changed();
});
$("changes").addEventListener("input", () => {
  const most = $("changes").valueAsNumber;
  if (Number.isNaN(most)) { delete state.problem.moves; } else { state.problem.moves = { at_most: most }; }
  changed();
});
function presentWords() {
  const current = state.problem.current;
  $("present").textContent = current
    ? "Today: leader " + current.leader + "; replicas " + current.replicas.join(", ") + "."
    : "Say which plan runs today to limit what changes.";
  $("runs").textContent = current ? "No plan runs today" : "The shown plan runs today";
  $("changes").disabled = !current;
  $("changes").value = state.problem.moves && state.problem.moves.at_most !== undefined ? state.problem.moves.at_most : "";
}

// operation mix
const shares = Array.from(document.querySelectorAll("[data-operation]"));
shares.forEach((field) => field.addEventListener("input", () => {
  const values = shares.map((one) => Number(one.value));
  if (values.some((value) => value > 0)) {
    state.mix = Object.fromEntries(shares.map((one, k) => [one.dataset.operation, values[k]]));
  }
  mixWords();
  changed();
}));
$("mix-reset").addEventListener("click", () => { delete state.mix; fill(); changed(); });
function mixWords() {
  const sum = shares.reduce((total, one) => total + Number(one.value), 0) || 1;
  shares.forEach((one) => {
    const text = (100 * Number(one.value) / sum).toFixed(1) + " %";
    one.setAttribute("aria-valuetext", text);
    one.closest(".field").querySelector("label").textContent = one.dataset.operation + ": " + text;
  });
}

// demand
function option(value, words) {
  const item = document.createElement("option");
  item.value = value;
  item.textContent = words;
  return item;
}
const demandOf = $("demand-of");
Object.keys(data.regions).forEach((name) => demandOf.append(option("region " + name, name)));
data.clients.forEach((name, k) => demandOf.append(option("client " + k, name)));
function demandClients() {
  const value = demandOf.value;
  if (value.startsWith("client ")) { return [data.clients[Number(value.slice(7))]]; }
  return (data.regions[value.slice(7)] || []).map((k) => data.clients[k]);
}
function showFactor() {
  const names = demandClients(), factors = names.map((name) => (state.demand || {})[name] ?? 1);
  const same = factors.every((factor) => factor === factors[0]);
  $("factor").value = same && factors.length ? factors[0] : 1;
  factorWords();
}
function factorWords() {
  const text = "× " + Number($("factor").value).toFixed(1);
  $("factor").setAttribute("aria-valuetext", text);
  $("factor-field").querySelector("label").textContent = "Factor: " + text;
}
demandOf.addEventListener("change", showFactor);
$("factor").addEventListener("input", () => {
  const factor = Number($("factor").value), demand = Object.assign({}, state.demand);
  demandClients().forEach((name) => {
    if (factor === 1) { delete demand[name]; } else { demand[name] = factor; }
  });
  if (Object.keys(demand).length) { state.demand = demand; } else { delete state.demand; }
  factorWords();
  chips();
  changed();
});
function chips() {
  const list = $("factors");
  list.textContent = "";
  const entries = Object.entries(state.demand || {});
  entries.slice(0, 12).forEach(([name, factor]) => {
    const item = document.createElement("li"), button = document.createElement("button");
    item.textContent = name + " × " + factor;
    button.type = "button";
    button.textContent = "✕";
    button.setAttribute("aria-label", "Demand of " + name + " as it is");
    button.addEventListener("click", () => {
      delete state.demand[name];
      if (!Object.keys(state.demand).length) { delete state.demand; }
      chips();
      showFactor();
      changed();
    });
    item.append(button);
    list.append(item);
  });
  if (entries.length > 12) {
    const item = document.createElement("li");
    item.textContent = "and " + (entries.length - 12) + " more";
    list.append(item);
  }
}

// all controls from the state
function fill() {
  keyed.forEach((field) => {
    const [home, key] = placeOf(field);
    field.value = typeof home[key] === "object" ? "" : home[key] ?? "";
  });
  $("goal").value = state.percentile === undefined ? "mean" : "percentile";
  $("minimise").value = state.minimise ?? "";
  $("limits").value = (state.keep || []).join("\n");
  $("percentile-field").hidden = state.percentile === undefined;
  $("spread-field").hidden = !late();
  if ($("interval")) { $("interval").value = state.interval ? data.intervals.indexOf(state.interval) + 1 : 0; }
  intervalWords();
  presentWords();
  shares.forEach((one) => {
    const name = one.dataset.operation;
    one.value = state.mix ? state.mix[name] || 0 : 100 * data.operations[name];
  });
  mixWords();
  const sites = $("site");
  sites.textContent = "";
  sites.append(option("", "choose here or on the map"));
  siteNames().slice().sort((a, b) => a.localeCompare(b)).forEach((name) => sites.append(option(name, name)));
  sites.value = chosen;
  chips();
  showFactor();
  marks();
}
$("controls").addEventListener("submit", (event) => event.preventDefault());

// --- address ----------------------------------------------------------------------------------
let written = "";
function remember() {
  written = "#" + encodeURIComponent(JSON.stringify(state));
  history.replaceState(null, "", written);
}
function read() {
  if (location.hash.length < 2) { return false; }
  try {
    const found = JSON.parse(decodeURIComponent(location.hash.slice(1)));
    if (!found || typeof found.problem !== "object" || found.problem === null) { throw new Error("no problem"); }
    state = found;
    chosen = "";
    return true;
  } catch (error) {
    $("problem").textContent = "The address holds no question: " + error.message;
    return false;
  }
}
window.addEventListener("hashchange", () => {
  if (location.hash !== written && read()) { fill(); changed(); }
});
$("link").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    $("link").textContent = "Copied";
  } catch (error) { $("link").textContent = "Copy the address bar"; }
  setTimeout(() => { $("link").textContent = "Copy link"; }, 1500);
});
$("reset").addEventListener("click", () => show(fresh()));

// --- theme ------------------------------------------------------------------------------------
$("theme").addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark"
    : window.matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

function show(question) {
  state = JSON.parse(JSON.stringify(question));
  chosen = "";
  fill();
  changed();
}
const { extras, stopExtras } = connectPanels({
  root, $, lane, show,
  last: () => last, chosen: () => chosen, state: () => state, busy: () => Boolean(running),
  drawn: () => counts.drawn,
  take(changes) { Object.assign(state.problem, changes); fill(); changed(); },
});

read();
fill();
changed();
