// State of the page, questions to the server, answers drawn. All markup in answers is made and
// escaped by the server; names go into the page as text only.
import { ask, button, connectPanels, element, put } from "./panels.js";

const root = document.documentElement;
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const lane = Array.from(crypto.getRandomValues(new Uint32Array(2))).join("-");
const PATIENCE = 150;  // ms that a running question keeps its turn when the next one is ready
const SITE_LISTS = ["pin", "pin_voter", "forbid", "lost"];

function fresh() {
  if (data.start) { return structuredClone(data.start); }
  const most = data.sites.length;
  return { replicas: Math.min(5, most), voters: Math.min(3, most) };
}
let state = fresh();
let chosen = "";         // site whose rules the toolbar changes
let adding = false;
let last = null;         // answer that is shown
const counts = { asked: 0, drawn: 0 };

// --- the question -----------------------------------------------------------------------------
// Set a key; without a value it is left out.
function set(key, value) {
  const none = value === undefined || value === "" || Number.isNaN(value) || (Object(value) === value && !Object.keys(value).length);
  if (none) { delete state[key]; } else { state[key] = value; }
}
function edited() {
  fill();
  changed();
}
let running = null;      // {controller, timer}
let dirty = false;

function changed() {
  past();
  counts.asked += 1;
  root.dataset.asked = counts.asked;
  remember();
  if (!running) { send(); return; }
  dirty = true;
  if (!running.timer) { running.timer = setTimeout(() => running && running.controller.abort(), PATIENCE); }
}

async function send() {
  const number = counts.asked, asked = structuredClone(state);
  const started = performance.now();
  const turn = running = { controller: new AbortController(), timer: 0 };
  stopExtras();
  dirty = false;
  const slow = setTimeout(() => status("wait", "searching …"), 300);
  try {
    const answer = await ask("plan", { question: asked, before: last && { ...last, question: null } }, lane, turn.controller.signal,
      (report) => status("wait", "searching: " + report.words));
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

// --- undo -------------------------------------------------------------------------------------
const BURST = 400;       // ms within which changes, as of a slider, are one step
const undone = { texts: [], now: "", at: 0 };

function past() {
  const text = JSON.stringify(state), time = performance.now();
  if (text === undone.now) { return; }
  if (undone.now && time - undone.at > BURST) { undone.texts.push(undone.now); }
  undone.texts.splice(0, undone.texts.length - 200);
  undone.at = undone.now ? time : -BURST;  // the first question is a step of its own
  undone.now = text;
  $("undo").disabled = !undone.texts.length;
}
function undo() {
  if (!undone.texts.length) { return; }
  undone.now = undone.texts.pop();
  undone.at = performance.now();
  $("undo").disabled = !undone.texts.length;
  show(JSON.parse(undone.now));
}
$("undo").addEventListener("click", undo);
document.addEventListener("keydown", (event) => {
  const typing = /^(text|number)$/.test(event.target.type || "");
  if ((event.ctrlKey || event.metaKey) && event.key === "z" && !typing) { undo(); event.preventDefault(); }
});

// --- an answer --------------------------------------------------------------------------------
const map = document.querySelector("svg.map");

function draw(answer, asked, number, started) {
  $("problem").textContent = "";
  status(answer.status, answer.badge);
  $("took").textContent = answer.asked;
  const onMap = map.contains(document.activeElement);
  for (const [layer, content] of Object.entries(answer.html.map)) {
    map.querySelector("g." + layer).innerHTML = content;
  }
  for (const panel of ["facts", "table", "clients"]) { put($(panel), answer.html[panel]); }
  $("difference").textContent = answer.difference;
  if (!state.shares) { data.shares = answer.shares; mixFields(); }
  if (JSON.stringify(asked.keep) === JSON.stringify(state.keep)) { limitBars(answer.limits); }
  $("command").textContent = answer.command;
  $("cannot").textContent = answer.cannot.length
    ? "The command line has no option for " + answer.cannot.join(", ") + ": use the Python lines." : "";
  $("python").textContent = answer.python;
  const { leader, voters, replicas, mean_latency_ms, cost, currency } = answer;
  last = { leader, voters, replicas, mean_latency_ms, cost, currency, question: asked };
  marks();
  if (onMap && chosen) { focusMark(); }
  const mark = chosen && map.querySelector(".sites .chosen");
  $("story").textContent = mark ? mark.dataset.story : "";
  shown(number);
  requestAnimationFrame(() => {
    setTimeout(() => { root.dataset.milliseconds = (performance.now() - started).toFixed(1); }, 0);
  });
}

// --- the map ----------------------------------------------------------------------------------
function isAdded(name) { return (state.sites || []).some((site) => site.name === name); }
function siteNames() { return data.sites.concat((state.sites || []).map((site) => site.name)); }

function marks() {
  const names = siteNames();
  const forbidden = new Set(listOf("forbid")), lost = new Set(listOf("lost"));
  const ruled = new Set([...listOf("pin"), ...listOf("pin_voter"), state.leader]);
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
  if (focus) { focusMark(); }
  extras();
}
function focusMark() {
  map.querySelector('.sites [data-index="' + siteNames().indexOf(chosen) + '"]')?.focus();
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
  const rule = ruleButtons.find((button) => button.getAttribute("aria-keyshortcuts") === event.key);
  if (rule && !event.ctrlKey && !event.metaKey) { choose(names[at], true); rule.click(); }
});

async function addSite(event) {
  const box = map.getBoundingClientRect(), view = map.viewBox.baseVal;
  const point = { x: (event.clientX - box.left) / box.width * view.width,
                  y: (event.clientY - box.top) / box.height * view.height };
  try {
    const place = await ask("place", point, lane + "-place");
    if (place) { addAt(place.lat, place.lon); }
  } catch (error) { $("problem").textContent = error.message; }
}
function addAt(lat, lon) {
  setAdding(false);
  let number = 1;
  while (siteNames().includes("New site " + number)) { number += 1; }
  const name = "New site " + number;
  state.sites = (state.sites || []).concat([{ name, lat, lon }]);
  chosen = name;
  edited();
}
$("where").addEventListener("keydown", (event) => {
  if (event.key === "Escape") { setAdding(false); $("add").focus(); }
  if (event.key !== "Enter") { return; }
  const [lat, lon, more] = $("where").value.split(/[,;\s]+/).filter(Boolean).map(Number);
  if (more === undefined && Math.abs(lat) <= 90 && Math.abs(lon) <= 180) { addAt(lat, lon); $("site").focus(); } else {
    $("problem").textContent = "No place: latitude and longitude in degrees, such as 48.9, 2.4";
  }
});

function setAdding(on) {
  adding = on;
  $("add").setAttribute("aria-pressed", String(on));
  map.classList.toggle("adding", on);
  $("where").hidden = !on;
  $("where").value = "";
  if (on) { $("where").focus(); }
}
$("add").addEventListener("click", () => {
  if (!isAdded(chosen)) { setAdding(!adding); return; }
  const name = chosen;
  set("sites", state.sites.filter((site) => site.name !== name));
  for (const rule of SITE_LISTS) { drop(rule, name); }
  if (state.leader === name) { set("leader"); }
  chosen = "";
  edited();
});

// --- rules of a site --------------------------------------------------------------------------
const ruleButtons = Array.from(document.querySelectorAll("[data-rule]"));

// a list of one text may be a text alone, as in a file
function listOf(key) { return [].concat(state[key] ?? []); }
function drop(rule, name) { set(rule, listOf(rule).filter((other) => other !== name)); }
function has(rule, name) {
  return rule === "leader" ? state.leader === name : listOf(rule).includes(name);
}

function toolbar() {
  ruleButtons.forEach((button) => {
    button.disabled = !chosen;
    button.setAttribute("aria-pressed", String(Boolean(chosen) && has(button.dataset.rule, chosen)));
  });
  const own = isAdded(chosen);
  $("add").textContent = own ? "Remove this site" : "Add a site";
  $("add").disabled = data.prices && !own;
}

ruleButtons.forEach((button) => button.addEventListener("click", () => {
  const rule = button.dataset.rule;
  const on = !has(rule, chosen);
  if (rule === "leader") { set("leader", on ? chosen : undefined); } else if (on) {
    state[rule] = listOf(rule).concat([chosen]);
  } else { drop(rule, chosen); }
  if (on && rule === "forbid") {
    drop("pin", chosen); drop("pin_voter", chosen);
    if (state.leader === chosen) { set("leader"); }
  } else if (on && rule !== "lost") { drop("forbid", chosen); }
  marks();
  changed();
}));
$("site").addEventListener("change", () => choose($("site").value));

// --- fields -----------------------------------------------------------------------------------
// Fields that hold a key of the question say which. An empty one leaves it out.
const keyed = Array.from(document.querySelectorAll("[data-key]"));
keyed.forEach((field) => field.addEventListener("input", () => {
  if (field.required && !field.value) { return; }
  set(field.dataset.key, field.type === "number" ? field.valueAsNumber : field.value);
  changed();
}));
$("minimise").addEventListener("change", () => {
  set("minimise", $("minimise").value.trim());
  edited();
});
function limitRows(more) {
  const list = $("limits"), texts = listOf("keep").concat(more ? [""] : []);
  list.textContent = "";
  texts.forEach((text, k) => {
    const field = element("input", { type: "text", value: text, placeholder: "p99(writes) <= 150 ms", label: "Limit " + (k + 1) });
    field.addEventListener("change", () => limit(k, field.value.trim()));
    list.append(element("li", {}, field, button("✕", () => limit(k, ""), "Remove limit " + (k + 1)),
      element("input", { type: "range", hidden: true, label: "Value of limit " + (k + 1) }), element("small")));
  });
  if (more) { list.querySelector("li:last-child input").focus(); }
}
// The bar of each limit: its handle is the limit, its filled part the value of the plan.
function limitBars(limits) {
  limits.forEach((limit, k) => {
    const row = $("limits").children[k], [field, , bar, now] = row.children;
    if (document.activeElement !== bar || bar.hidden) {
      const top = limit.unit === "%" ? 100 : 2 * Math.max(limit.bound, limit.value || 0) || 1;
      bar.max = Number(top.toPrecision(2));
      bar.step = limit.unit === "%" ? 0.1 : 10 ** Math.floor(Math.log10(top) - 2);
      bar.value = limit.bound;
      bar.hidden = false;
    }
    const unit = limit.unit ? " " + limit.unit : "";
    bar.oninput = () => {
      field.value = limit.measure + " " + limit.sign + " " + Number(bar.value) + unit;
      state.keep = listOf("keep").with(k, field.value);
      changed();
    };
    bar.setAttribute("aria-valuetext", bar.value + unit);
    bar.style.setProperty("--now", 100 * Math.min(1, (limit.value || 0) / bar.max) + "%");
    now.textContent = limit.value === null ? limit.words : "now " + limit.words;
  });
}
function limit(k, text) {
  const limits = listOf("keep");
  limits.splice(k, 1, ...(text ? [text] : []));
  set("keep", limits);
  edited();
}
$("add-limit").addEventListener("click", () => limitRows(true));
// whether a measure needs distributions of RTTs
function late() {
  const texts = [state.minimise || "", ...listOf("keep")];
  return texts.some((text) => /^\s*(p\d|within)/.test(text));
}
if ($("interval")) {
  $("interval").addEventListener("input", () => {
    set("interval", data.intervals[Number($("interval").value) - 1]);
    intervalWords();
    changed();
  });
}
function intervalWords() {
  if ($("interval")) { say($("interval"), "Hour of day", state.interval || "all hours"); }
}
// the value of a slider in words
function say(field, name, words) {
  field.setAttribute("aria-valuetext", words);
  field.closest(".field").querySelector("label").textContent = name + ": " + words;
}

// moves from the configuration that runs today
$("runs").addEventListener("click", () => {
  const rest = listOf("keep").filter((text) => !/^\s*(changes|copied)/.test(text));
  if (state.current) {
    ["current", "max_moves", "move_price", "move_horizon", "copy_gb", "replica_gb"].forEach((key) => set(key));
    set("keep", rest);
  } else if (last && last.leader) {
    state.current = { leader: last.leader, voters: last.voters, replicas: last.replicas };
    state.keep = rest.concat(["changes <= 2"]);
  } else { return; }
  edited();
});
function presentWords() {
  const current = state.current;
  $("present").textContent = current
    ? "Today: leader " + current.leader + "; replicas " + current.replicas.join(", ") + "."
    : "Say which plan runs today to limit what changes.";
  $("runs").textContent = current ? "No plan runs today" : "The shown plan runs today";
}

// operation mix
const shares = Array.from(document.querySelectorAll("[data-operation]"));
shares.forEach((field) => field.addEventListener("input", () => {
  const values = shares.map((one) => Number(one.value));
  if (values.some((value) => value > 0)) {
    state.shares = Object.fromEntries(shares.map((one, k) => [one.dataset.operation, values[k]]));
  }
  mixWords();
  changed();
}));
$("mix-reset").addEventListener("click", () => { set("shares"); edited(); });
function mixFields() {
  shares.forEach((one) => {
    const name = one.dataset.operation;
    one.value = state.shares ? state.shares[name] || 0 : 100 * data.shares[name];
  });
  mixWords();
}
function mixWords() {
  const sum = shares.reduce((total, one) => total + Number(one.value), 0) || 1;
  shares.forEach((one) => say(one, one.dataset.operation, (100 * Number(one.value) / sum).toFixed(1) + " %"));
}

// demand
const option = (value, words) => element("option", { value }, words);
const demandOf = $("demand-of");
Object.keys(data.regions).forEach((name) => demandOf.append(option("region " + name, name)));
data.clients.forEach((name, k) => demandOf.append(option("client " + k, name)));
function demandClients() {
  const value = demandOf.value;
  if (value.startsWith("client ")) { return [data.clients[Number(value.slice(7))]]; }
  return (data.regions[value.slice(7)] || []).map((k) => data.clients[k]);
}
function showFactor() {
  const names = demandClients(), factors = names.map((name) => (state.scale_demand || {})[name] ?? 1);
  const same = factors.every((factor) => factor === factors[0]);
  $("factor").value = same && factors.length ? factors[0] : 1;
  factorWords();
}
function factorWords() { say($("factor"), "Factor", "× " + Number($("factor").value).toFixed(1)); }
demandOf.addEventListener("change", showFactor);
$("factor").addEventListener("input", () => {
  factorWords();
  scale(demandClients(), Number($("factor").value));
});
// Multiply the demand of clients.
function scale(names, factor) {
  const demand = Object.assign({}, state.scale_demand);
  names.forEach((name) => {
    if (factor === 1) { delete demand[name]; } else { demand[name] = factor; }
  });
  set("scale_demand", demand);
  chips();
  changed();
}
function chips() {
  const entries = Object.entries(state.scale_demand || {}), more = entries.length - 12;
  $("factors").replaceChildren(...entries.slice(0, 12).map(([name, factor]) => element("li", {}, name + " × " + factor,
    button("✕", () => { scale([name], 1); showFactor(); }, "Demand of " + name + " as it is"))), ...(more > 0 ? [element("li", {}, "and " + more + " more")] : []));
}

// all controls from the state
function fill() {
  keyed.forEach((field) => {
    const key = field.dataset.key, value = state[key], several = field.required && typeof value !== "number";
    field.value = several ? "" : value ?? (key === "spread" ? data.spread : "");
    if (field.required) { field.placeholder = several ? String(value ?? "all").replace("..", " to ") : ""; }
  });
  $("minimise").value = state.minimise ?? "";
  limitRows();
  $("spread-field").hidden = !late();
  if ($("interval")) {
    $("interval").value = state.interval ? data.intervals.indexOf(state.interval) + 1 : 0;
    $("interval-field").hidden = Boolean(state.counts);
  }
  intervalWords();
  presentWords();
  $("table-of-demand").textContent = state.counts ? "Demand of " + state.counts.name + "."
    : "Drop a CSV (client, operation, count) on the page for another demand.";
  mixFields();
  const names = siteNames().slice().sort((a, b) => a.localeCompare(b));
  $("site").replaceChildren(option("", "choose here or on the map"), ...names.map((name) => option(name, name)));
  $("site").value = chosen;
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
    if (!found || typeof found !== "object" || !("replicas" in found)) { throw new Error("no replicas"); }
    state = found;
    chosen = "";
    return true;
  } catch (error) {
    $("problem").textContent = "The address holds no question: " + error.message;
    return false;
  }
}
window.addEventListener("hashchange", () => {
  if (location.hash !== written && read()) { edited(); }
});
$("link").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    $("link").textContent = "Copied";
  } catch (error) { $("link").textContent = "Copy the address bar"; }
  setTimeout(() => { $("link").textContent = "Copy link"; }, 1500);
});
$("reset").addEventListener("click", () => show(fresh()));

function show(question) {
  state = structuredClone(question);
  chosen = "";
  edited();
}
const { extras, stopExtras } = connectPanels({
  root, $, lane, show,
  last: () => last, chosen: () => chosen, state: () => state, busy: () => Boolean(running),
  drawn: () => counts.drawn,
  take(point) {
    Object.assign(state, point.question);
    if (point.limit) { state.keep = listOf("keep").filter((text) => !/^\s*cost/.test(text)).concat([point.limit]); }
    edited();
  },
  demand(counts) {
    state.counts = counts;
    ["interval", "shares", "scale_demand"].forEach((key) => set(key));
    edited();
  },
});

read();
edited();
