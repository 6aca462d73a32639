// A list or grid of any length that has elements only for the visible cells. Data is requested in pages, shortly before
// it becomes visible.

const OVERSCAN = 2; // rows above and below the visible ones

// Stop loading the images of a cell.
function stopLoading(cell) {
  for (const image of cell.querySelectorAll("img")) if (!image.complete) image.removeAttribute("src");
}

export class Windowed {
  // load(offset, limit) -> {n, items}; draw(item, index) -> element; wantedWidth null for a list with one column
  constructor(scroller, { load, draw, height, wantedWidth = null, page = 100 }) {
    Object.assign(this, { scroller, load, draw, height, wantedWidth, page });
    this.sheet = document.createElement("div");
    this.sheet.className = "sheet";
    this.sheet.setAttribute("role", "presentation");
    scroller.replaceChildren(this.sheet);
    this.n = 0;
    this.active = 0;
    this.pages = new Map();
    this.cells = new Map();
    this.version = 0;
    scroller.addEventListener("scroll", () => this.render(), { passive: true });
    new ResizeObserver(() => this.render()).observe(scroller);
  }

  get columns() {
    const width = this.scroller.clientWidth;
    return this.wantedWidth ? Math.max(3, Math.floor(width / this.wantedWidth)) : 1;
  }

  get rowHeight() {
    return this.wantedWidth ? Math.floor(this.scroller.clientWidth / this.columns) + this.height : this.height;
  }

  item(index) {
    const items = this.pages.get(Math.floor(index / this.page));
    return items && items[index % this.page];
  }

  indexWhere(test) {
    for (const [number, items] of this.pages) {
      const place = items.findIndex(test);
      if (place >= 0) return number * this.page + place;
    }
    return -1;
  }

  // Show new content from the start.
  async reset() {
    this.scroller.scrollTop = 0;
    this.active = 0;
    await this.reload();
  }

  // Request the visible entries again; the present ones stay until the response arrives.
  async reload() {
    const version = ++this.version;
    const numbers = this.neededPages();
    const answers = await Promise.all(numbers.map((number) => this.load(number * this.page, this.page)));
    if (version !== this.version) return;
    this.pages = new Map(numbers.map((number, place) => [number, answers[place].items]));
    this.n = answers[0].n;
    this.active = Math.max(0, Math.min(this.active, this.n - 1));
    this.redraw();
  }

  neededPages() {
    const [first, last] = this.range(true);
    const numbers = [];
    for (let number = Math.floor(first / this.page); number <= Math.floor(Math.max(first, last - 1) / this.page); number++) {
      numbers.push(number);
    }
    return numbers;
  }

  range(isBeforeFirst = false) {
    const { columns, rowHeight } = this;
    const top = Math.max(0, Math.floor(this.scroller.scrollTop / rowHeight) - OVERSCAN);
    const rows = Math.ceil(this.scroller.clientHeight / rowHeight) + 2 * OVERSCAN;
    const end = (top + rows) * columns;
    return [top * columns, isBeforeFirst && !this.n ? end : Math.min(this.n, end)];
  }

  redraw() {
    this.cancel();
    for (const cell of this.cells.values()) cell.remove();
    this.cells.clear();
    this.render();
  }

  // Images that are still loading would delay the next request: a browser opens six connections to a server.
  cancel() {
    for (const cell of this.cells.values()) stopLoading(cell);
  }

  render() {
    const { columns, rowHeight } = this;
    if (!this.scroller.clientWidth) return; // not on the screen
    const width = this.scroller.clientWidth / columns;
    this.sheet.style.height = `${Math.ceil(this.n / columns) * rowHeight}px`;
    const [first, last] = this.range();
    for (const [index, cell] of this.cells) {
      if (index < first || index >= last) {
        stopLoading(cell);
        cell.remove();
        this.cells.delete(index);
      }
    }
    for (let index = first; index < last; index++) {
      const item = this.item(index);
      if (!item) {
        this.want(Math.floor(index / this.page));
        continue;
      }
      let cell = this.cells.get(index);
      if (!cell) {
        cell = this.draw(item, index);
        cell.id = `${this.scroller.id}-${index}`;
        cell.dataset.index = index;
        cell.setAttribute("aria-posinset", index + 1);
        cell.setAttribute("aria-setsize", this.n);
        this.cells.set(index, cell);
        this.sheet.append(cell);
      }
      cell.style.width = `${width}px`;
      cell.style.height = `${rowHeight}px`;
      cell.style.transform = `translate(${(index % columns) * width}px, ${Math.floor(index / columns) * rowHeight}px)`;
      cell.classList.toggle("active", index === this.active);
    }
    if (this.n) this.scroller.setAttribute("aria-activedescendant", `${this.scroller.id}-${this.active}`);
  }

  async want(number) {
    if (this.pages.has(number)) return;
    this.pages.set(number, []); // requested
    const version = this.version;
    try {
      const { n, items } = await this.load(number * this.page, this.page);
      if (version !== this.version) return;
      this.n = n;
      this.pages.set(number, items);
    } catch {
      this.pages.delete(number); // requested again when it is next visible
      return;
    }
    this.render();
  }

  // Make a cell the active one and scroll to it.
  go(index) {
    this.active = Math.max(0, Math.min(index, this.n - 1));
    const top = Math.floor(this.active / this.columns) * this.rowHeight;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + this.rowHeight > scrollTop + clientHeight) this.scroller.scrollTop = top + this.rowHeight - clientHeight;
    this.render();
  }

  // The index that an arrow or paging key leads to; null for other keys.
  target(key) {
    const perScreen = Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight)) * this.columns;
    const steps = {
      ArrowDown: this.columns, ArrowUp: -this.columns, PageDown: perScreen, PageUp: -perScreen, Home: -this.n, End: this.n,
      ...(this.columns > 1 && { ArrowRight: 1, ArrowLeft: -1 }),
    };
    return key in steps ? Math.max(0, Math.min(this.n - 1, this.active + steps[key])) : null;
  }
}
