// Panels that are asked after the plan, the tray of kept plans, and files to take away.
import { ask } from "./connection.js";

// Connect the panels. `page` has root, $ and lane; last(), chosen(), state(), busy(), drawn(): what
// is shown; and take(changes), show(state): other questions. Returns extras and stopExtras.
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
      ["why", "curve", "front"].forEach((kind) => { if ($(kind)) { $(kind + "-content").textContent = ""; } });
      root.dataset.extras = page.drawn();
      return;
    }
    const mine = extra = new AbortController();
    const question = last.asked;
    const panels = ["why", "curve", "front"].filter((kind) => $(kind) && $(kind).open);
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
        place.innerHTML = answer.html;
        if (answer.points) { clickable(place, kind, answer.points); }
      } catch (error) {
        if (error.name === "AbortError") { return; }
        place.textContent = error.message;
      }
      place.removeAttribute("aria-busy");
    }
    root.dataset.extras = page.drawn();
  }
  for (const kind of ["why", "curve", "front"]) {
    if ($(kind)) { $(kind).addEventListener("toggle", () => { if ($(kind).open) { extras(); } }); }
  }

  function clickable(place, kind, points) {
    place.querySelectorAll("svg.chart .series circle").forEach((mark, k) => {
      const point = points[k];
      if (!point) { return; }
      function take() {
        page.take(point.problem);
      }
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
    kept.push({ name, state: last.asked, answer: last, on: kept.filter((one) => one.on).length < 2 });
    tray();
  });

  function tray() {
    const list = $("kept");
    list.textContent = "";
    kept.forEach((one) => {
      const item = document.createElement("li"), label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = one.on;
      box.addEventListener("change", () => {
        one.on = box.checked;
        const on = kept.filter((other) => other.on && other !== one);
        if (one.on && on.length > 1) { on[0].on = false; }
        tray();
      });
      const money = one.answer.cost === null ? "" : ", " + one.answer.cost.toFixed(2) + " " + one.answer.currency;
      label.append(box, " " + one.name + ": " + one.answer.mean_latency_ms.toFixed(2) + " ms" + money +
        ", leader " + (one.answer.leader || "none"));
      item.append(label, textButton("Show", () => page.show(one.state)), textButton("Remove", () => { kept = kept.filter((other) => other !== one); tray(); }));
      list.append(item);
    });
    compare();
  }

  function textButton(words, action) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = words;
    button.addEventListener("click", action);
    return button;
  }

  async function compare() {
    const place = $("comparison"), pair = kept.filter((one) => one.on);
    if (pair.length !== 2) { place.textContent = ""; return; }
    try {
      const answer = await ask("compare", { questions: pair.map((one) => one.state), names: pair.map((one) => one.name) },
        lane + "-tray");
      if (!answer) { return; }
      place.innerHTML = answer.html;
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
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([file.text], { type: file.type }));
      link.download = file.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      $("problem").textContent = "";
      $("notes").textContent = "";
      (file.notes || []).forEach((note) => {
        const item = document.createElement("li");
        item.textContent = note;
        $("notes").append(item);
      });
      root.dataset.file = file.name;
    } catch (error) { $("problem").textContent = error.message; }
  }
  $("get-plan").addEventListener("click", () => download("plan"));
  $("get-report").addEventListener("click", () => download("report"));
  $("system").addEventListener("change", () => {
    if ($("system").value) { download("export", $("system").value); }
    $("system").value = "";
  });

  return { extras, stopExtras };
}
