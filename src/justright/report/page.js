// Sorting and searching of tables. The page is complete without it.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const key = (row, column) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent;
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
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
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Search classes and reasons";
  search.setAttribute("aria-label", search.placeholder);
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  });
  table.parentElement.before(search);
}
