// Sorting and searching of tables and cards. The page is complete without it.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const said = rows.map((row) => row.textContent.toLowerCase());
  const key = (row, column) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent;
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    // an empty cell of a column of numbers counts as less than any number
    if (typeof a !== typeof b) return typeof a === "number" ? 1 : -1;
    return a.localeCompare(b);
  };
  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    if (!rows.some((row) => row.cells[column].textContent)) return; // pictures have no order
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const direction = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      rows.sort((a, b) => direction * compare(key(a, column), key(b, column)));
      body.append(...rows);
    });
  });
  const text = new Map(rows.map((row, place) => [row, said[place]]));
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = table.dataset.search;
  search.setAttribute("aria-label", search.placeholder);
  const found = document.createElement("span");
  found.className = "found";
  found.setAttribute("role", "status");
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/);
    let n = 0;
    for (const row of rows) {
      row.hidden = !words.every((word) => text.get(row).includes(word));
      n += !row.hidden;
    }
    found.textContent = search.value ? `${n.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
  });
  table.parentElement.before(search, found);
}

// On paper nothing can be unfolded.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details:not([open])")) {
    fold.open = true;
    fold.dataset.opened = "";
  }
});
addEventListener("afterprint", () => {
  for (const fold of document.querySelectorAll("details[data-opened]")) {
    fold.open = false;
    delete fold.dataset.opened;
  }
});
