// Jobs of the server, panels that are asked after the plan, the tray of kept plans, files to take away.
// Send a job and pass on its events; resolves with the content of the last one.
// A lane has one job at a time; the number says which request is the later one, since a request that
// was given up may reach the server last.
let asked = 0;
export async function ask(kind, value, laneName, signal, progress) {
  const response = await fetch("ask/" + kind, {
    method: "POST", signal,
    headers: { "Content-Type": "application/json", "X-Lane": laneName + " " + (asked += 1) },
    body: JSON.stringify(value),
  });
  if (!response.ok) { throw new Error((await response.text()).trim()); }
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value: bytes } = await reader.read();
    if (done) { throw new Error("the server ended before its answer"); }
    text += decoder.decode(bytes, { stream: true });
    let end;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const [head, body] = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const name = head.slice(7), content = JSON.parse(body.slice(6));
      if (name === "progress") { if (progress) { progress(content); } continue; }
      if (name === "error") { throw new Error(content.message); }
      return name === "answer" ? content : null;  // null: cancelled by a later question
    }
  }
}

// Make an element: properties (a label under "label"), then what is in it.
export function element(name, { label, ...properties } = {}, ...content) {
  const made = Object.assign(document.createElement(name), properties);
  if (label) { made.setAttribute("aria-label", label); }
  made.append(...content);
  return made;
}
export function button(words, onclick, label) {
  return element("button", { type: "button", onclick, label }, words);
}

const PANELS = ["why", "curve", "front", "everyone"];

// Put markup of the server in its place; script.js makes its tables sort and fold.
export function put(place, html) {
  place.innerHTML = html;
  place.dispatchEvent(new Event("dress", { bubbles: true }));
}

// Connect the panels. `page` has root, $ and lane; last(), chosen(), state(), busy(), drawn(): what
// is shown; and take(point), show(state), demand(table): other questions. Returns extras and stopExtras.
export function connectPanels(page) {
  const { root, $, lane } = page;
  let kept = [];           // tray: {name, state, answer, on}

  // --- panels that are asked after the plan -----------------------------------------------------
  let extra = null;        // AbortController of the questions behind the plan
  function stopExtras() { if (extra) { extra.abort(); extra = null; } }

  async function extras() {
    stopExtras();
    const last = page.last();
    if (!last || page.busy()) { return; }
    if (!last.replicas.length) {
      PANELS.forEach((kind) => { if ($(kind)) { $(kind + "-content").textContent = ""; } });
      root.dataset.extras = page.drawn();
      return;
    }
    const mine = extra = new AbortController();
    const question = last.question;
    const panels = PANELS.filter((kind) => $(kind) && $(kind).open);
    panels.forEach((kind) => $(kind + "-content").setAttribute("aria-busy", "true"));
    const tail = Array.from(document.querySelectorAll("#facts dt")).find((name) => name.textContent === "99th percentile");
    if (tail && !last.tail) {
      try {
        const answer = await ask("tail", { question }, lane, mine.signal);
        if (!answer || mine !== extra) { return; }
        last.tail = answer.words;
      } catch (error) {
        if (error.name === "AbortError") { return; }
        last.tail = "not known";
      }
      tail.nextElementSibling.querySelector("strong").textContent = last.tail;
    }
    for (const kind of panels) {
      const place = $(kind + "-content");
      try {
        const answer = await ask(kind, { question, site: page.chosen() || null }, lane, mine.signal);
        if (!answer || mine !== extra) { return; }
        put(place, answer.html);
        if (answer.points) { clickable(place, kind, answer.points); }
      } catch (error) {
        if (error.name === "AbortError") { return; }
        place.textContent = error.message;
      }
      place.removeAttribute("aria-busy");
    }
    root.dataset.extras = page.drawn();
  }
  for (const kind of PANELS) {
    if ($(kind)) { $(kind).addEventListener("toggle", () => { if ($(kind).open) { extras(); } }); }
  }

  function clickable(place, kind, points) {
    place.querySelectorAll("svg.chart .series circle").forEach((mark, k) => {
      const point = points[k];
      if (!point) { return; }
      const take = () => page.take(point);
      mark.dataset.point = k;
      mark.setAttribute("tabindex", "0");
      mark.setAttribute("role", "button");
      mark.setAttribute("aria-label", "Ask for " + point.words);
      mark.addEventListener("click", take);
      mark.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); take(); }
      });
    });
  }

  // --- tray -------------------------------------------------------------------------------------
  $("keep").addEventListener("click", () => {
    const last = page.last();
    if (!last || !last.replicas.length) { return; }
    const used = new Set(kept.map((one) => one.name));
    const name = "ABCDEFGHIJKLMNOPQRSTUVWXYZ".split("").find((letter) => !used.has(letter));
    if (!name) { return; }
    kept.push({ name, state: last.question, answer: last, on: kept.filter((one) => one.on).length < 2 });
    tray();
  });

  function tray() {
    const list = $("kept");
    list.textContent = "";
    kept.forEach((one) => {
      const box = element("input", { type: "checkbox", checked: one.on });
      box.addEventListener("change", () => {
        one.on = box.checked;
        const on = kept.filter((other) => other.on && other !== one);
        if (one.on && on.length > 1) { on[0].on = false; }
        tray();
      });
      const money = one.answer.cost === null ? "" : ", " + one.answer.cost.toFixed(2) + " " + one.answer.currency;
      const said = " " + one.name + ": " + one.answer.mean_latency_ms.toFixed(2) + " ms" + money +
        ", leader " + (one.answer.leader || "none");
      list.append(element("li", {}, element("label", {}, box, said), button("Show", () => page.show(one.state)),
        button("Remove", () => { kept = kept.filter((other) => other !== one); tray(); })));
    });
    compare();
  }

  async function compare() {
    const place = $("comparison"), pair = kept.filter((one) => one.on);
    if (pair.length !== 2) { place.textContent = ""; return; }
    try {
      const answer = await ask("compare", { questions: pair.map((one) => one.state), names: pair.map((one) => one.name) },
        lane + "-tray");
      if (!answer) { return; }
      put(place, answer.html);
      place.querySelectorAll("svg.map").forEach((svg, k) => {
        answer.differs[k].forEach((index) => {
          const mark = svg.querySelector('.sites [data-index="' + index + '"]');
          if (mark) { mark.classList.add("differs"); }
        });
      });
    } catch (error) { place.textContent = error.message; }
  }

  // --- files ------------------------------------------------------------------------------------
  async function download(format, system) {
    try {
      const file = await ask("file", { question: page.state(), format, system: system || null, database: $("database").value },
        lane + "-file");
      if (!file) { return; }
      const link = element("a", { href: URL.createObjectURL(new Blob([file.text], { type: file.type })), download: file.name });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      $("problem").textContent = "";
      $("notes").replaceChildren(...(file.notes || []).map((note) => element("li", {}, note)));
      root.dataset.file = file.name;
    } catch (error) { $("problem").textContent = error.message; }
  }
  $("get-question").addEventListener("click", () => download("question"));
  $("open").addEventListener("click", () => $("load").click());
  $("load").addEventListener("change", async () => {
    const file = $("load").files[0];
    if (file) { await take(file); }
    $("load").value = "";
  });
  // a question, or a table of demand
  async function take(file) {
    try {
      const table = { name: file.name, text: await file.text() };
      if (/\.(csv|tsv)$/i.test(file.name)) { page.demand(table); return; }
      const answer = await ask("load", { text: table.text }, lane + "-load");
      if (answer) { page.show(answer.question); }
    } catch (error) { $("problem").textContent = error.message; }
  }
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    const file = event.dataTransfer && event.dataTransfer.files[0];
    if (file) { event.preventDefault(); take(file); }
  });
  $("get-plan").addEventListener("click", () => download("plan"));
  $("get-report").addEventListener("click", () => download("report"));
  $("system").addEventListener("change", () => {
    if ($("system").value) { download("export", $("system").value); }
    $("system").value = "";
  });

  return { extras, stopExtras };
}
