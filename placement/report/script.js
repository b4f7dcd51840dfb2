// Sorts and folds tables, switches layers and themes. Without it the page shows everything.
(function () {
  "use strict";
  const root = document.documentElement;
  root.classList.add("scripted");

  // --- sorting
  function keyOf(row, column) {
    const cell = row.children[column];
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") { return a < b ? -1 : a > b ? 1 : 0; }
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  }
  function sort(cell) {
    const table = cell.closest("table"), column = cell.cellIndex, now = cell.getAttribute("aria-sort");
    const first = cell.classList.contains("number") && now === null ? "descending" : "ascending";
    const ascending = now === null ? first === "ascending" : now === "descending";
    const rows = Array.from(table.tBodies[0].rows).map((row, position) => ({ row, key: keyOf(row, column), position }));
    rows.sort((x, y) => {
      const noX = Number.isNaN(x.key), noY = Number.isNaN(y.key);
      if (noX || noY) { return noX - noY || x.position - y.position; }  // what is unknown stays last
      return (ascending ? 1 : -1) * compare(x.key, y.key) || x.position - y.position;
    });
    rows.forEach((item) => table.tBodies[0].appendChild(item.row));
    Array.from(cell.parentElement.cells).forEach((other) => other.removeAttribute("aria-sort"));
    cell.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  }

  // --- wide tables become cards on a phone (style.css): each cell says what it is; long ones fold
  function dress(part) {
    part.querySelectorAll("table.sortable").forEach((table) => {
      const names = Array.from(table.tHead.rows[0].cells).map((cell) => cell.textContent);
      if (names.length < 4) { return; }
      table.parentElement.classList.add("cards");
      Array.from(table.tBodies[0].rows).forEach((row) => {
        Array.from(row.cells).forEach((cell, column) => { cell.dataset.label = names[column]; });
      });
    });
    part.querySelectorAll(".table-box.long").forEach((box) => {
      const count = box.querySelector("tbody").rows.length;
      const more = document.createElement("button");
      more.type = "button";
      more.className = "more";
      const show = (folded) => {
        box.classList.toggle("folded", folded);
        more.setAttribute("aria-expanded", String(!folded));
        more.textContent = folded ? "Show all " + count + " rows" : "Show the first 20 rows";
      };
      more.addEventListener("click", () => show(!box.classList.contains("folded")));
      show(true);
      box.insertAdjacentElement("afterend", more);
    });
  }
  dress(document);
  document.addEventListener("dress", (event) => dress(event.target));

  // --- the map tells its story to fingers and keys too
  for (const kind of ["click", "focusin", "mouseover"]) {
    document.addEventListener(kind, (event) => {
      const mark = event.target.closest("svg.map [data-story]");
      if (mark) { document.getElementById("story").textContent = mark.dataset.story; }
    });
  }
  document.addEventListener("change", (event) => {
    const layer = event.target.dataset.layer;
    if (!layer) { return; }
    document.querySelectorAll("svg.map").forEach((map) => map.classList.toggle("show-" + layer, event.target.checked));
  });

  // --- buttons
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) { return; }
    if (button.matches("table.sortable thead button")) { sort(button.parentElement); }
    if (button.id === "theme") {
      const dark = root.dataset.theme ? root.dataset.theme === "dark"
        : window.matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
    }
    if (button.id === "download") {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([document.getElementById("data").textContent], { type: "application/json" }));
      link.download = "data.json";
      link.click();
      URL.revokeObjectURL(link.href);
    }
  });
  for (const id of ["theme", "download"]) {
    const button = document.getElementById(id);
    if (button) { button.hidden = false; }
  }
})();
