// The images of one cluster, and the selected ones.

import { element, note, show } from "./dialogs.js";
import { get } from "./server.js";
import { Windowed } from "./windowed.js";

const MAX_PAGE = 2000; // images in one response

export class ImageGrid {
  constructor(onSelect) {
    this.onSelect = onSelect;
    this.order = document.getElementById("image-order");
    this.cluster = null;
    this.seq = 0;
    this.selected = new Set();
    this.anchor = 0;
    this.grid = new Windowed(document.getElementById("grid"), {
      height: 20, wantedWidth: 136, page: 200,
      load: (offset, limit) => this.load(offset, limit),
      draw: (item, index) => this.draw(item, index),
    });
    this.order.addEventListener("change", () => this.grid.reset());
    const { scroller } = this.grid;
    scroller.addEventListener("click", (event) => {
      const tile = event.target.closest(".tile");
      if (tile) this.point(Number(tile.dataset.index), event.shiftKey);
    });
    scroller.addEventListener("dblclick", (event) => {
      const tile = event.target.closest(".tile");
      if (tile) this.enlarge(Number(tile.dataset.index));
    });
    scroller.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const target = this.grid.target(event.key);
    if (target === null && event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === " ") this.point(this.grid.active, false);
    else if (event.key === "Enter") this.enlarge(this.grid.active);
    else {
      if (event.shiftKey) this.range(this.anchor, target);
      else this.anchor = target;
      this.grid.go(target);
    }
  }

  async load(offset, limit) {
    const { cluster } = this;
    if (cluster === null) return { n: 0, items: [] };
    const { n, seq, images } = await get(`clusters/${cluster}/images`, { order: this.order.value, offset, limit });
    if (cluster === this.cluster) this.seq = seq;
    return { n, items: images };
  }

  draw([row, confidence, isUnlike, isGiven], index) {
    const about = isGiven ? "labeled" : isUnlike ? "unlike all" : `${Math.round(100 * confidence)} %`;
    return element("div", {
      className: "tile", role: "option", "data-row": row, "aria-selected": this.selected.has(row),
      "aria-label": `Image ${index + 1}, ${isGiven ? "labeled before the run" : isUnlike ? "unlike all categories" : `${about} sure`}`,
    }, element("img", { src: `images/${row}/160`, alt: "", loading: "lazy", draggable: false }),
    element("span", { className: isUnlike ? "soft unlike" : "soft" }, about));
  }

  async open(cluster) {
    this.cluster = cluster;
    this.clear();
    await this.grid.reset();
  }

  point(index, isRange) {
    const item = this.grid.item(index);
    if (!item) return;
    if (isRange) this.range(this.anchor, index);
    else {
      if (!this.selected.delete(item[0])) this.selected.add(item[0]);
      this.anchor = index;
    }
    this.grid.go(index);
    this.mark();
  }

  range(from, to) {
    for (let index = Math.min(from, to); index <= Math.max(from, to); index++) {
      const item = this.grid.item(index);
      if (item) this.selected.add(item[0]);
    }
    this.mark();
  }

  async all(most) {
    this.selected.clear();
    const { cluster } = this;
    for (let offset = 0; offset < Math.min(this.grid.n, most); offset += MAX_PAGE) {
      const { images } = await get(`clusters/${cluster}/images`, { order: this.order.value, offset, limit: MAX_PAGE });
      for (const [row] of images) if (this.selected.size < most) this.selected.add(row);
    }
    if (this.grid.n > most) note(`The first ${most.toLocaleString("en")} are selected; one action takes no more.`);
    this.mark();
  }

  clear() {
    this.selected.clear();
    this.anchor = 0;
    this.mark();
  }

  mark() {
    for (const cell of this.grid.cells.values()) cell.setAttribute("aria-selected", this.selected.has(Number(cell.dataset.row)));
    this.onSelect(this.selected.size);
  }

  // The images for an action: those selected, or else the active one.
  chosen() {
    if (this.selected.size) return [...this.selected];
    const item = document.activeElement === this.grid.scroller && this.grid.item(this.grid.active);
    return item ? [item[0]] : [];
  }

  enlarge(first) {
    let index = first;
    return show("Image", (end, dialog) => {
      const image = element("img", { className: "large", alt: "The image, larger" });
      const facts = element("p", { className: "soft" });
      const draw = () => {
        const [row, confidence, isUnlike, isGiven] = this.grid.item(index);
        image.src = `images/${row}/640`;
        const state = this.selected.has(row) ? "selected" : "not selected";
        const about = isGiven ? "labeled before the run" : `${Math.round(100 * confidence)} % sure${isUnlike ? " · unlike all categories" : ""}`;
        facts.textContent = `${index + 1} of ${this.grid.n} · ${about} · ${state}`;
        this.grid.go(index);
      };
      const step = (by) => {
        if (this.grid.item(index + by)) index += by;
        draw();
      };
      const toggle = () => { this.point(index, false); draw(); };
      dialog.keys = { ArrowRight: () => step(1), ArrowLeft: () => step(-1), " ": toggle, Enter: () => end() };
      const button = (text, label, onclick) => element("button", { type: "button", "aria-label": label, onclick }, text);
      draw();
      dialog.tabIndex = -1;
      requestAnimationFrame(() => dialog.focus());
      return element("div", { className: "picture" }, image, facts, element("p", { className: "buttons" },
        button("‹", "Previous image", () => step(-1)), button("Select", "Select or not", toggle), button("›", "Next image", () => step(1))));
    }, { className: "wide" });
  }
}
