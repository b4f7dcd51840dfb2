// Sorts and folds tables, switches layers and themes. Without it the page shows everything.
(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("scripted");

  // --- sorting
  function keyOf(row, column) {
    var cell = row.children[column];
    if (cell.dataset.value !== undefined) { return Number(cell.dataset.value); }
    return cell.textContent;
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") { return a < b ? -1 : a > b ? 1 : 0; }
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  }
  function sort(table, column, ascending) {
    var body = table.tBodies[0];
    var rows = Array.from(body.rows).map(function (row, position) {
      return { row: row, key: keyOf(row, column), position: position };
    });
    rows.sort(function (x, y) {
      var noX = Number.isNaN(x.key), noY = Number.isNaN(y.key);
      if (noX || noY) { return noX - noY || x.position - y.position; }  // what is unknown stays last
      return (ascending ? 1 : -1) * compare(x.key, y.key) || x.position - y.position;
    });
    rows.forEach(function (item) { body.appendChild(item.row); });
    Array.from(table.tHead.rows[0].cells).forEach(function (cell, position) {
      if (position === column) {
        cell.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      } else { cell.removeAttribute("aria-sort"); }
    });
  }
  document.querySelectorAll("table.sortable").forEach(function (table) {
    Array.from(table.tHead.rows[0].cells).forEach(function (cell, column) {
      cell.querySelector("button").addEventListener("click", function () {
        var now = cell.getAttribute("aria-sort");
        var first = cell.classList.contains("number") && now === null ? "descending" : "ascending";
        sort(table, column, now === null ? first === "ascending" : now === "descending");
      });
    });
  });

  // --- wide tables become cards on a phone (style.css): each cell says what it is
  document.querySelectorAll("table.sortable").forEach(function (table) {
    var names = Array.from(table.tHead.rows[0].cells).map(function (cell) { return cell.textContent; });
    if (names.length < 4) { return; }
    table.parentElement.classList.add("cards");
    Array.from(table.tBodies[0].rows).forEach(function (row) {
      Array.from(row.cells).forEach(function (cell, column) { cell.dataset.label = names[column]; });
    });
  });

  // --- folding long tables
  document.querySelectorAll(".table-box.long").forEach(function (box) {
    var count = box.querySelector("tbody").rows.length;
    var more = document.createElement("button");
    more.type = "button";
    more.className = "more";
    function show(folded) {
      box.classList.toggle("folded", folded);
      more.setAttribute("aria-expanded", String(!folded));
      more.textContent = folded ? "Show all " + count + " rows" : "Show the first 20 rows";
    }
    more.addEventListener("click", function () { show(!box.classList.contains("folded")); });
    show(true);
    box.insertAdjacentElement("afterend", more);
  });

  // --- the map tells its story to fingers and keys too
  var story = document.getElementById("story");
  document.querySelectorAll("svg.map [data-story]").forEach(function (mark) {
    function tell() { story.textContent = mark.dataset.story; }
    mark.addEventListener("click", tell);
    mark.addEventListener("focus", tell);
    mark.addEventListener("mouseenter", tell);
  });
  document.querySelectorAll("input[data-layer]").forEach(function (box) {
    box.addEventListener("change", function () {
      document.querySelectorAll("svg.map").forEach(function (map) {
        map.classList.toggle("show-" + box.dataset.layer, box.checked);
      });
    });
  });

  // --- theme
  var theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", function () {
    var dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : window.matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // --- data
  var download = document.getElementById("download");
  var data = document.getElementById("data");
  if (download && data) {
    download.hidden = false;
    download.addEventListener("click", function () {
      var blob = new Blob([data.textContent], { type: "application/json" });
      var link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = "data.json";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }
})();
