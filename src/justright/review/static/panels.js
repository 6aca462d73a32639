// Panels beside the clusters: keys, history, agreement, export.

import { count } from "./clusters.js";
import { element, note, show } from "./dialogs.js";
import { get, post } from "./server.js";

// Keys of the image grid that are not commands.
const GRID_KEYS = [
  ["arrows", "", "Images", "next or previous image"], ["Space", "", "Images", "select"],
  ["Shift + arrows", "", "Images", "select a range"], ["Enter", "", "Images", "enlarge"],
];

// keys: [key, command, heading, text] each.
export function help(keys) {
  const headings = [...new Set(keys.map(([, , heading]) => heading))];
  const row = ([key, , , text]) => [
    element("dt", {}, ...(key === "Escape" ? "Esc" : key).split(" ").map((word) => (word === "+" ? " + " : element("kbd", {}, word)))),
    element("dd", {}, text),
  ];
  return show("Keys", () => element("div", { className: "keys" }, ...headings.map((heading) => element("section", {},
    element("h3", {}, heading),
    element("dl", {}, ...[...GRID_KEYS, ...keys].filter((each) => each[2] === heading).flatMap(row))))), { className: "wide" });
}

// undo(seq) undoes one action.
export function history(undo) {
  return show("History", () => {
    const list = element("ol", { className: "history" });
    const refresh = async () => {
      const { lines } = await get("history", { limit: 200 });
      list.replaceChildren(...lines.map((line) => {
        const onclick = async () => { await undo(line.seq); await refresh(); };
        const button = element("button", { type: "button", "aria-label": `Undo action ${line.seq}`, onclick }, line.is_undo ? "Redo" : "Undo");
        return element("li", { className: line.is_undone ? "undone" : "" },
          element("span", { className: "soft" }, `${line.seq}`), element("span", { className: "label" }, `${line.by} ${line.text}`),
          element("time", { className: "soft", dateTime: line.at }, new Date(line.at).toLocaleString()), line.is_undone ? "" : button);
      }));
      if (!lines.length) list.append(element("li", { className: "soft" }, "No actions yet."));
    };
    refresh();
    return list;
  }, { className: "wide" });
}

// open(cluster) shows a disputed cluster.
export function agreement(open) {
  return show("Agreement", (end) => {
    const body = element("div", {});
    get("agreement").then(({ pairs, disputes }) => {
      const rows = pairs.map((pair) => element("tr", {}, ...[
        pair.reviewers.join(" and "), pair.what, `${pair.n_same} of ${pair.n_both}`, pair.kappa === null ? "–" : pair.kappa.toFixed(2),
      ].map((text) => element("td", {}, text))));
      const head = element("tr", {}, ...["Reviewers", "About", "Same", "Kappa"].map((text) => element("th", { scope: "col" }, text)));
      const entries = disputes.map((dispute) => {
        const answers = Object.entries(dispute.answers).map(([who, what]) => `${who}: ${what}`).join(", ");
        const picture = dispute.row === null ? "" : element("img", { src: `images/${dispute.row}/160`, alt: "", width: 36, height: 36 });
        const button = element("button", { type: "button", onclick: () => { end(); open(dispute.cluster); } }, "Look");
        return element("li", {}, picture, element("span", { className: "label" }, `${dispute.name} (${dispute.what})`),
          element("span", { className: "soft" }, answers), button);
      });
      body.append(
        element("p", { className: "soft" }, "All reviewers share the clusters. Compared are their verdicts, the names they chose and their random checks. "
          + "Kappa is 1 for full agreement, 0 for chance."),
        pairs.length ? element("table", {}, head, ...rows) : element("p", {}, "No two reviewers have judged the same clusters or images yet."),
        element("h3", {}, `Disputes: ${disputes.length}`), element("ul", { className: "history" }, ...entries));
    }, (error) => note(error.message, true));
    return body;
  }, { className: "wide" });
}

const FORMS = [
  ["csv", "A table, CSV", "every image with its cluster, name and status"],
  ["parquet", "A table, Parquet", "the same"],
  ["folders", "Class folders", "one folder per class, for kept clusters"],
  ["labeled", "A labeled set", "kept clusters, for --labeled of the next run"],
];

export function exports() {
  return show("Export", () => {
    const choice = (text, more, type, fields = {}) => {
      const input = element("input", { type, ...fields });
      return [input, element("label", {}, input, element("span", {}, element("b", {}, text), more ? ` ${more}` : ""))];
    };
    const forms = FORMS.map(([value, text, more], place) => choice(text, more, "radio", { name: "form", value, checked: place === 0 }));
    const [isAll, allLabel] = choice("Also clusters nobody judged", "", "checkbox");
    const [withKnown, knownLabel] = choice("Also the labeled images of known classes", "", "checkbox");
    const [isCopy, copyLabel] = choice("Copies instead of links", "", "checkbox");
    const message = element("p", { role: "status", "aria-live": "polite", className: "written" });
    const form = element("form", { className: "export" }, ...forms.map(([, label]) => label), element("hr"), allLabel, knownLabel, copyLabel,
      element("p", { className: "buttons" }, element("button", { className: "main" }, "Write")), message);
    const chosen = () => forms.find(([input]) => input.checked)[0].value;
    const fit = () => {
      isAll.disabled = withKnown.disabled = !["folders", "labeled"].includes(chosen());
      isCopy.disabled = chosen() !== "folders";
    };
    for (const [input] of forms) input.addEventListener("change", () => { withKnown.checked = input.value === "labeled"; });
    form.addEventListener("change", fit);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      message.textContent = "Writing …";
      try {
        const written = await post("export", {
          form: chosen(), is_all: isAll.checked && !isAll.disabled, with_known: withKnown.checked && !withKnown.disabled,
          is_copy: isCopy.checked && !isCopy.disabled,
        });
        message.replaceChildren(`${count(written.n_images)} written to ${written.path}. `,
          written.name ? element("a", { href: `export/${written.name}`, download: written.name }, "Download") : "");
      } catch (error) {
        message.textContent = error.message;
      }
    });
    fit();
    return form;
  });
}
