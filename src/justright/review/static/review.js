// The review page: keys, buttons, and updates after actions of others.

import { accuracyText, check } from "./checking.js";
import { certainty, ClusterList, count, STATUS } from "./clusters.js";
import { ask, confirm, element, isDialogOpen, note, pick } from "./dialogs.js";
import { ImageGrid } from "./images.js";
import { agreement, exports, help, history } from "./panels.js";
import * as server from "./server.js";

const REJECTED = -1;
const POLL_MS = 2500;
const REVIEWER_KEY = `justright reviewer ${location.pathname}`;

const byId = (id) => document.getElementById(id);
let about = null, status = null, reviewer = "", current = null;
const list = new ClusterList((cluster, isEntered) => enqueue(() => open(cluster, { isEntered, isList: true })));
const grid = new ImageGrid((n) => { byId("selected").textContent = n ? `${count(n)} selected` : ""; });

// Commands run one after the other: a key pressed during an action applies to the result of that action.
let chain = Promise.resolve(), nWaiting = 0;
function enqueue(work) {
  document.body.dataset.busy = ++nWaiting;
  chain = chain.then(work).catch(report).finally(() => {
    if (!--nWaiting) delete document.body.dataset.busy;
  });
  return chain;
}

async function report(error) {
  if (error instanceof server.Refused) {
    note(error.message, true);
    await refresh({ isForced: true });
  } else if (error instanceof TypeError || error.name === "TimeoutError") note("The server does not respond.", true);
  else throw error;
}

// Show clusters

async function open(cluster, { isEntered = false, isList = false, isQuiet = false } = {}) {
  const isSame = current && current.cluster === cluster;
  if (!isSame) grid.grid.cancel();
  current = await server.get(`clusters/${cluster}`);
  describe();
  list.show(cluster, !isSame);
  if (!isQuiet) document.body.dataset.view = isList && !isEntered && matchMedia("(min-width: 48rem)").matches ? "list" : "cluster";
  if (isSame && isQuiet) await grid.grid.reload();
  else await grid.open(cluster);
  if (isEntered) grid.grid.scroller.focus();
}

function describe() {
  const isBin = current.cluster === REJECTED;
  byId("cluster-pane").dataset.cluster = current.cluster;
  byId("name").textContent = current.name;
  const opinions = Object.entries(current.opinions).map(([who, opinion]) => `${who}: ${opinion.verdict}${opinion.name ? ` as ${opinion.name}` : ""}`);
  byId("facts").replaceChildren(count(current.n), ...(isBin ? [] : [
    ` · ${certainty(current.confidence)} · ${current.doubt ? `${current.doubt} · ` : ""}`, element("span", { className: `chip ${current.status}` }, STATUS[current.status]),
    current.kind === "known" ? element("span", { className: "chip known" }, "known class") : "", opinions.length ? ` ${opinions.join(", ")}` : "",
  ]));
  for (const name of ["keep", "name", "known", "merge", "split", "discard", "reject"]) {
    document.querySelector(`.bar [data-command=${name}]`).disabled = isBin || (name === "split" && !about.can_split);
  }
}

function showStatus(newStatus) {
  status = newStatus;
  document.body.dataset.seq = status.seq;
  byId("progress").max = status.n_clusters;
  byId("progress").value = status.n_reviewed;
  const disputed = status.by_status.disputed ? `, ${status.by_status.disputed} disputed` : "";
  byId("progress-text").textContent = `${status.n_reviewed.toLocaleString("en")} of ${count(status.n_clusters, "cluster")}, `
    + `${status.n_images_reviewed.toLocaleString("en")} of ${count(status.n_images)}${disputed}`;
  byId("accuracy").textContent = accuracyText(status);
  byId("bin").firstChild.textContent = `Rejected images: ${status.n_rejected.toLocaleString("en")} `;
}

// Update the page; changes of other clusters do not affect the open one.
async function refresh({ isForced = false } = {}) {
  const before = status ? status.seq : 0;
  const latest = await server.get("status", { since: before }); // another refresh may replace `status` meanwhile
  showStatus(latest);
  if (latest.seq === before && !isForced) return;
  await list.list.reload();
  if (!current) return;
  if (isForced || latest.changed.includes(current.cluster) || current.cluster === REJECTED) {
    try {
      await open(current.cluster, { isQuiet: true });
    } catch (error) {
      if (!(error instanceof server.Refused)) throw error;
      const next = list.list.item(list.list.active) ?? list.list.item(0);
      if (next) await open(next.cluster, { isQuiet: true });
    }
  } else {
    current.seq = grid.seq = latest.seq;
    list.show(current.cluster, false);
    list.follow();
  }
}

// Send actions

async function act(action, { base = Math.min(current?.seq ?? 0, grid.seq || Infinity), message = "" } = {}) {
  if (server.isWaiting) {
    note("The server does not respond; one action is waiting. Further actions are blocked until it is back.", true);
    return null;
  }
  byId("saved").textContent = "Saving …";
  try {
    const outcome = await server.act(reviewer, base, action);
    byId("saved").textContent = "Saved";
    if (message) note(message);
    return outcome;
  } catch (error) {
    byId("saved").textContent = "Not saved";
    throw error;
  }
}

async function actAndRefresh(action, options = {}) {
  const { next = null } = options;
  const outcome = await act(action, options);
  if (!outcome) return null;
  grid.clear();
  if (next !== null) current = null;
  await refresh();
  if (next !== null) await open(next, { isQuiet: true });
  return outcome;
}

// Let the reviewer choose another cluster; the most similar to these images come first.
async function pickCluster(title, text, rows = []) {
  let base = Infinity;
  const load = async (search) => {
    const near = await server.get(`clusters/${current.cluster}/near`, { search: search.slice(0, 120), rows: rows.slice(0, 50) });
    base = Math.min(base, near.seq);
    return near.clusters.map((card) => ({
      label: card.name, detail: count(card.n), picture: `images/${card.cover}/160`, value: card.cluster,
    }));
  };
  const into = await pick(title, { text, load });
  return into === null ? null : { into, base: Math.min(base, current.seq, grid.seq || Infinity) };
}

const isCluster = () => current && current.cluster !== REJECTED;

function chosenImages() {
  const rows = grid.chosen();
  if (!rows.length) note("Select images first: click them, or Space.");
  return rows;
}

// Keep or reject the cluster, and open the next one.
async function judge(verdict, message) {
  if (!isCluster()) return;
  await actAndRefresh({ do: verdict, cluster: current.cluster }, { message: `${message} ${current.name}`, next: list.neighbor(1) });
}

const commands = {
  keep: () => judge("keep", "Kept"),
  discard: () => judge("discard", "Rejected"),
  name: async () => {
    if (!isCluster()) return;
    const { cluster, seq } = current;
    const name = await ask("Name this cluster", {
      text: "What its images show.", value: current.name, ok: "Name", field: { maxLength: 120, id: "new-name" },
    });
    if (name === null) return;
    const kind = about.known_classes.includes(name) ? "known" : "name";
    await actAndRefresh({ do: kind, cluster, name }, { base: Math.min(seq, grid.seq || seq), message: `Named ${name}` });
    const [other] = current?.same_name ?? [];
    if (other !== undefined && await confirm("Same name", `Another cluster is called ${name}, too. Merge this one into it?`, "Merge")) {
      await actAndRefresh({ do: "merge", cluster: current.cluster, into: other }, { next: other });
    }
  },
  known: async () => {
    if (!isCluster()) return;
    const { cluster, seq } = current;
    const load = async (search) => {
      const words = search.toLowerCase().split(/\s+/);
      return about.known_classes.filter((name) => words.every((word) => name.toLowerCase().includes(word))).slice(0, 50)
        .map((name) => ({ label: name, value: name }));
    };
    const name = await pick("Which known class is it?", { text: "A class of the labeled images.", load });
    if (name !== null) await actAndRefresh({ do: "known", cluster, name }, { base: seq, message: `Marked as ${name}` });
  },
  merge: async () => {
    if (!isCluster()) return;
    const { cluster } = current;
    const target = await pickCluster(`Merge ${current.name} into …`, "All its images go there; the other keeps its name. The most similar first.");
    if (target) await actAndRefresh({ do: "merge", cluster, into: target.into }, { base: target.base, message: "Merged", next: target.into });
  },
  split: async () => {
    if (!isCluster() || !about.can_split) return;
    const { cluster, seq } = current;
    const n = await ask(`Split ${current.name}`, {
      text: "The number of clusters to split it into.", value: "2", ok: "Split",
      field: { type: "number", min: 2, max: Math.min(about.max_parts, current.n), id: "n-parts" },
    });
    if (n === null) return;
    const outcome = await actAndRefresh({ do: "split", cluster, n_parts: Number(n) }, { base: seq });
    if (outcome) note(`Split into ${outcome.made.length + 1}; the largest part stayed here.`);
  },
  move: async () => {
    const rows = chosenImages();
    if (!rows.length) return;
    const { cluster } = current;
    const target = await pickCluster(`Move ${count(rows.length)} to …`, "The most similar first.", rows);
    if (target) await actAndRefresh({ do: "move", cluster, rows, to: target.into }, { base: target.base, message: `Moved ${count(rows.length)}` });
  },
  moveNew: async () => {
    const rows = chosenImages();
    if (rows.length) await actAndRefresh({ do: "move", cluster: current.cluster, rows, to: null }, { message: "Moved to a new cluster" });
  },
  reject: async () => {
    if (!isCluster()) return;
    const rows = chosenImages();
    if (rows.length) await actAndRefresh({ do: "reject", cluster: current.cluster, rows }, { message: `Rejected ${count(rows.length)}` });
  },
  undo: async () => { await actAndRefresh({ do: "undo", target: null }, { message: "Undone" }); },
  redo: async () => { await actAndRefresh({ do: "redo" }, { message: "Redone" }); },
  all: () => grid.all(about.max_rows),
  none: () => grid.clear(),
  next: () => step(1),
  previous: () => step(-1),
  bin: () => open(REJECTED),
  check: async () => {
    const answer = async (action, base) => {
      try {
        await act(action, { base });
        await refresh();
      } catch (error) {
        await report(error);
      }
      return status;
    };
    await check(reviewer, answer, status);
  },
  history: () => history((seq) => act({ do: "undo", target: seq }).then(() => refresh()).catch(report)),
  agreement: () => agreement((cluster) => enqueue(() => open(cluster))),
  export: () => exports(),
  help: () => help(KEYS),
  reviewer: () => askReviewer(),
  back: () => { document.body.dataset.view = "list"; byId("clusters").focus(); },
  images: () => { document.body.dataset.view = "cluster"; byId("grid").focus(); },
  search: () => { document.body.dataset.view = "list"; byId("search").focus(); byId("search").select(); },
  imageOrder: () => nextOption(byId("image-order")),
  clusterOrder: () => nextOption(byId("order")),
};

// The key of each command, and its text and heading in the help.
const KEYS = [
  [".", "next", "Clusters", "next cluster"],
  [",", "previous", "Clusters", "previous cluster"],
  ["k", "keep", "Clusters", "keep, then the next cluster"],
  ["n", "name", "Clusters", "name"],
  ["o", "known", "Clusters", "mark as a known class"],
  ["m", "merge", "Clusters", "merge into another"],
  ["s", "split", "Clusters", "split by clustering its images again"],
  ["X", "discard", "Clusters", "reject the cluster"],
  ["a", "all", "Images", "select all"],
  ["Escape", "none", "Images", "select none"],
  ["v", "move", "Images", "move to another cluster"],
  ["V", "moveNew", "Images", "move to a new cluster"],
  ["x", "reject", "Images", "reject images"],
  ["i", "imageOrder", "Images", "change the order"],
  ["u", "undo", "Review", "undo my last action"],
  ["U", "redo", "Review", "redo what I undid"],
  ["c", "check", "Review", "check random images: r right, w wrong"],
  ["h", "history", "Review", "history"],
  ["t", "agreement", "Review", "agreement"],
  ["e", "export", "Review", "export"],
  ["b", "bin", "Review", "rejected images"],
  ["w", "reviewer", "Review", "change my name"],
  ["l", "back", "Navigation", "to the list"],
  ["g", "images", "Navigation", "to the images"],
  ["f", "search", "Navigation", "search"],
  ["y", "clusterOrder", "Navigation", "change the order of clusters"],
  ["Backspace", "back", "Navigation", "back to the list"],
  ["?", "help", "Navigation", "these keys"],
];

function nextOption(field) {
  field.selectedIndex = (field.selectedIndex + 1) % field.options.length;
  field.dispatchEvent(new Event("change"));
}

async function step(by) {
  const cluster = list.neighbor(by);
  if (cluster !== null) await open(cluster, { isQuiet: true });
}

async function askReviewer() {
  const name = await ask("Who is reviewing?", { text: "Shown with all your actions.", value: reviewer, field: { maxLength: 40, id: "who" } });
  if (name) setReviewer(name);
}

function setReviewer(name) {
  reviewer = name;
  localStorage.setItem(REVIEWER_KEY, name);
  byId("reviewer").replaceChildren(`${name} `, element("kbd", {}, "w"));
}

// Show the reason in place of an image whose file is missing, damaged or was replaced since the run.
document.addEventListener("error", async (event) => {
  const image = event.target;
  if (!(image instanceof HTMLImageElement)) return;
  const { src } = image;
  const reason = await server.get(src).then(() => "", (error) => error.message.split("\n")[0]);
  if (image.src !== src) return;
  image.dataset.alt ??= image.alt;
  [image.alt, image.title] = [reason.split(": ").at(-1), reason];
}, true);
document.addEventListener("load", ({ target }) => {
  if (target instanceof HTMLImageElement && "alt" in target.dataset) {
    [target.alt, target.title] = [target.dataset.alt, ""];
    delete target.dataset.alt;
  }
}, true);

document.addEventListener("keydown", (event) => {
  if (isDialogOpen() || event.ctrlKey || event.metaKey || event.altKey) return;
  // a field of a dialog that was just closed keeps the focus for a moment; a fast key must still work
  if (event.target.closest("input, select, textarea") && !event.target.closest("dialog:not([open])")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const known = KEYS.find(([key]) => key === event.key);
  if (!known) return;
  event.preventDefault();
  enqueue(commands[known[1]]);
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-command]");
  if (button) enqueue(commands[button.dataset.command]);
});

server.whenWaiting((isWaiting, reason) => {
  document.body.classList.toggle("waiting", isWaiting);
  if (isWaiting) byId("saved").textContent = `${reason} Your last action will be sent again.`;
});

async function start() {
  about = await server.get("about");
  document.title = `Review of ${about.run}`;
  byId("run").textContent = about.run;
  byId("expected").textContent = about.expected;
  document.body.classList.toggle("calibrated", Boolean(about.expected));
  const name = localStorage.getItem(REVIEWER_KEY) ?? about.reviewer;
  if (name) setReviewer(name);
  const late = server.waiting();
  if (late) await late.then(() => note("The waiting action is saved."), report);
  showStatus(await server.get("status", { since: 0 }));
  await list.list.reset();
  const first = list.list.item(0);
  if (first) await open(first.cluster, { isQuiet: true });
  while (!reviewer) await askReviewer();
  document.body.dataset.ready = "yes";
  setInterval(() => {
    if (!document.hidden && !isDialogOpen() && !server.isWaiting) enqueue(() => refresh().catch(() => { byId("saved").textContent = "The server does not respond."; }));
  }, POLL_MS);
}

enqueue(start);
