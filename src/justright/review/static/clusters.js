// The list of clusters on the left.

import { element } from "./dialogs.js";
import { get } from "./server.js";
import { Windowed } from "./windowed.js";

export const STATUS = { open: "○ open", kept: "✓ kept", rejected: "✕ rejected", disputed: "! disputed" };
export const count = (n, what = "image") => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
// The mean confidence of a cluster is its expected purity if confidences are calibrated.
export const certainty = (confidence) => {
  const share = `${Math.round(100 * confidence)} %`;
  return document.body.classList.contains("calibrated") ? `expected purity ${share}` : `${share} sure`;
};

export class ClusterList {
  constructor(onOpen) {
    this.order = document.getElementById("order");
    this.status = document.getElementById("status");
    this.search = document.getElementById("search");
    this.current = null;
    this.list = new Windowed(document.getElementById("clusters"), {
      height: 68,
      load: (offset, limit) => this.load(offset, limit),
      draw: (card) => this.draw(card),
    });
    for (const field of [this.order, this.status]) field.addEventListener("change", () => this.list.reset());
    let timer = 0;
    this.search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.list.reset(), 120);
    });
    const { scroller } = this.list;
    scroller.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) onOpen(this.list.item(Number(row.dataset.index)).cluster);
    });
    scroller.addEventListener("keydown", (event) => {
      const target = this.list.target(event.key);
      if (target === null && event.key !== "Enter") return;
      event.preventDefault();
      event.stopPropagation();
      if (target !== null) this.list.go(target);
      const card = this.list.item(this.list.active);
      if (card) onOpen(card.cluster, event.key === "Enter");
    });
  }

  async load(offset, limit) {
    const { n, clusters } = await get("clusters", {
      order: this.order.value, status: this.status.value, search: this.search.value.slice(0, 120), offset, limit,
    });
    return { n, items: clusters };
  }

  draw(card) {
    return element("div", { className: "row", role: "option", "aria-selected": card.cluster === this.current, "data-cluster": card.cluster },
      element("img", { src: `images/${card.cover}/160`, alt: "", loading: "lazy", width: 48, height: 48 }),
      element("span", { className: "label" }, card.name),
      element("span", { className: "soft" }, `${count(card.n)} · ${certainty(card.confidence)}`),
      element("span", { className: `chip ${card.status}` }, STATUS[card.status]),
      card.kind === "known" ? element("span", { className: "chip known" }, "known") : "");
  }

  // The cluster `step` places further in the list, or null at its end. If the current one moved down in the list
  // because it was corrected, the next one is in its former place.
  neighbor(step) {
    const { active } = this.list;
    const place = this.list.indexWhere((card) => card.cluster === this.current);
    const index = active + (step > 0 && (place < 0 || place > active) ? step - 1 : step);
    return index < 0 || index >= this.list.n ? null : (this.list.item(index)?.cluster ?? null);
  }

  // Update the place of the open cluster after others were added or removed before it.
  follow() {
    const place = this.list.indexWhere((card) => card.cluster === this.current);
    if (place >= 0) this.list.active = place;
  }

  // Mark the cluster that is open; scroll to it only if the reviewer went there.
  show(cluster, isScrolled = true) {
    this.current = cluster;
    const place = this.list.indexWhere((card) => card.cluster === cluster);
    if (place >= 0 && isScrolled) this.list.go(place);
    for (const cell of this.list.cells.values()) {
      cell.setAttribute("aria-selected", cell.dataset.cluster === String(cluster));
    }
  }
}
