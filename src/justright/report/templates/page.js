// Sort and search tables and cards, and show the images of a map. The page is complete without this script.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const text = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
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
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = table.dataset.search;
  search.setAttribute("aria-label", search.placeholder);
  const count = document.createElement("span");
  count.className = "found";
  count.setAttribute("role", "status");
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/);
    let n = 0;
    for (const row of rows) {
      row.hidden = !words.every((word) => text.get(row).includes(word));
      n += !row.hidden;
    }
    count.textContent = search.value ? `${n.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
  });
  table.parentElement.before(search, count);
}

// The image behind a mark of a map, by pointer or arrow keys: tiles of 40 pixels, 2 apart, 5 a row.
for (const map of document.querySelectorAll("figure.map")) {
  const drawn = map.querySelector("svg");
  const spots = Array.from(map.querySelectorAll("img[data-spots]")).flatMap((sheet) =>
    sheet.dataset.spots.split(" ").map((spot, place) => ({ sheet, place, at: spot.split(",").map(Number) })),
  );
  if (!spots.length) continue;
  spots.sort((a, b) => a.at[0] - b.at[0]);
  const tile = document.createElement("div");
  tile.className = "tile";
  tile.hidden = true;
  map.append(tile);
  const show = ({ sheet, place }, x, y) => {
    const image = sheet.cloneNode();
    image.style.margin = `${-42 * Math.floor(place / 5)}px 0 0 ${-42 * (place % 5)}px`;
    image.hidden = tile.hidden = false;
    tile.replaceChildren(image);
    tile.style.left = `${Math.min(x + 12, innerWidth - 104)}px`;
    tile.style.top = `${Math.min(y + 12, innerHeight - 104)}px`;
  };
  const hide = () => { tile.hidden = true; };
  const onScreen = ({ at }, box = drawn.getBoundingClientRect()) => [box.left + (at[0] / 1000) * box.width, box.top + (at[1] / 1000) * box.height];
  const showNearest = ({ clientX, clientY }) => {
    let least = 12; // pixels; farther marks do not count
    let nearest = null;
    const box = drawn.getBoundingClientRect();
    for (const spot of spots) {
      const [x, y] = onScreen(spot, box);
      const distance = Math.hypot(x - clientX, y - clientY);
      if (distance < least) [least, nearest] = [distance, spot];
    }
    if (nearest) show(nearest, clientX, clientY);
    else hide();
  };
  for (const kind of ["pointermove", "pointerdown"]) drawn.addEventListener(kind, showNearest);
  drawn.addEventListener("pointerleave", hide);
  let current = -1; // of the keyboard, from left to right
  drawn.setAttribute("tabindex", "0");
  drawn.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    current = Math.max(0, Math.min(spots.length - 1, current + step));
    show(spots[current], ...onScreen(spots[current]));
  });
  drawn.addEventListener("blur", hide);
}

// A table or figure that is wider than the screen can be scrolled with the keyboard.
const sizes = new ResizeObserver((changed) => {
  for (const { target } of changed) {
    const isWider = target.scrollWidth > target.clientWidth;
    for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", "Scrolls sideways"]]) {
      if (isWider) target.setAttribute(name, value);
      else target.removeAttribute(name);
    }
  }
});
for (const wide of document.querySelectorAll(".wide")) sizes.observe(wide);

// Unfold everything for printing.
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
