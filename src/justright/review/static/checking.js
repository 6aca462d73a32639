// Judge randomly drawn images as right or wrong; the estimate of accuracy uses only these answers.

import { element, note, show } from "./dialogs.js";
import { get } from "./server.js";

const percent = (share) => `${(100 * share).toFixed(0)} %`;
const range = (low, high) => `${(100 * low).toFixed(0)} to ${percent(high)}`;
const checks = (n, what) => `${n.toLocaleString("en")} ${what}check${n === 1 ? "" : "s"}`;

export function accuracyText({ accuracy: estimate, n_more_checks: more }) {
  if (!estimate) return `Not checked yet: about ${checks(more, "random ")} give the accuracy within ±4 points`;
  const rest = more ? `about ${more.toLocaleString("en")} more give it within ±4 points` : "within ±4 points";
  return `Accuracy ${percent(estimate.accuracy)} (${range(estimate.low, estimate.high)}) from ${checks(estimate.n_checked, "random ")}; ${rest}`;
}

// The interval of the checks alone, and how much the confidences narrow it.
function gainText({ accuracy: estimate }) {
  if (!estimate) return "";
  const plain = ` From the checks alone the interval is ${range(estimate.plain_low, estimate.plain_high)}`;
  return estimate.length_ratio < 1 ? `${plain}; with the confidences it is ${estimate.length_ratio.toFixed(2)} times as long.` : `${plain}.`;
}

// answer(action, base) sends one action and returns the status after it.
export function check(reviewer, answer, status) {
  return show("Is this image right?", (end, dialog) => {
    const image = element("img", { className: "large", alt: "The image to check" });
    const question = element("p", { className: "lead" });
    const examples = element("div", { className: "examples" });
    const button = (onclick, className, ...children) => element("button", { type: "button", className, onclick }, ...children);
    const right = button(() => judge(true), "main", "Right ", element("kbd", {}, "r"));
    const wrong = button(() => judge(false), "danger", "Wrong ", element("kbd", {}, "w"));
    const undo = button(() => send({ do: "undo", target: null }), "", "Undo ", element("kbd", {}, "u"));
    const round = button(() => send({ do: "round", round: now.round + 1 }), "", "New round");
    const estimate = element("p", { className: "soft", role: "status", "aria-live": "polite" });
    let now = null, isBusy = true;

    const next = async () => {
      try {
        now = await get("check", { reviewer });
      } catch (error) {
        note(error.message, true);
        end(); // without a next image there is nothing to judge
        return;
      }
      const isOver = now.row === null;
      right.disabled = wrong.disabled = isOver;
      image.hidden = examples.hidden = isOver;
      if (isOver) question.textContent = "You have checked every image of this round.";
      else {
        image.src = `images/${now.row}/640`;
        question.replaceChildren("Does it belong in ", element("b", {}, now.name), "?");
        examples.replaceChildren(...now.examples.map((row) => element("img", { src: `images/${row}/160`, alt: "An example" })));
      }
      dialog.dataset.row = now.row ?? "";
      isBusy = false;
    };
    const showEstimate = (latest) => { estimate.textContent = `Round ${latest.round}. ${accuracyText(latest)}.${gainText(latest)}`; };
    const send = async (action) => {
      if (isBusy) return;
      isBusy = true;
      dialog.dataset.row = ""; // no answer is accepted until the next image is shown
      showEstimate(await answer(action, now.seq));
      await next();
    };
    const judge = (is_right) => {
      if (now && now.row !== null) send({ do: "check", round: now.round, row: now.row, cluster: now.cluster, is_right });
    };
    dialog.keys = { r: () => judge(true), w: () => judge(false), u: () => undo.click() };
    dialog.tabIndex = -1;
    requestAnimationFrame(() => dialog.focus()); // not the button that closes it
    showEstimate(status);
    next();
    return element("div", { className: "check" },
      element("div", { className: "picture" }, image),
      element("div", {}, question, examples, element("p", { className: "buttons" }, right, wrong, undo), estimate,
        element("p", { className: "soft" }, "Images are drawn at random, the same for every reviewer: only these checks count for the estimate. "
          + "It estimates the clusters as they were checked; after corrections, start a new round."), element("p", { className: "buttons" }, round)));
  }, { className: "wide" });
}
