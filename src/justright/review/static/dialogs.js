// Dialogs. Each closes with Escape and then restores the focus.

// An element with these properties, such as `onclick`, and, where a name is no property of it, attributes.
export function element(tag, fields = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(fields)) {
    if (name in made && !name.includes("-")) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export const isAsking = () => document.querySelector("dialog[open]") !== null;

// Show a dialog until it closes; `end(value)` closes it, Escape returns null. A dialog with its own keys has them in
// `dialog.keys`, wherever the focus is: a button that is disabled loses it.
export function show(title, build, { className = "" } = {}) {
  const before = document.activeElement;
  const heading = element("h2", { id: `title-${Math.random().toString(36).slice(2)}` }, title);
  const close = element("button", { type: "button", className: "close", "aria-label": "Close", onclick: () => dialog.close() }, "×");
  const dialog = element("dialog", { className, "aria-labelledby": heading.id }, element("div", { className: "head" }, heading, close));
  return new Promise((done) => {
    let value = null;
    const end = (result = null) => { value = result; dialog.close(); };
    const pressed = (event) => {
      if (!dialog.open) return; // closed, and not removed yet
      const command = !event.ctrlKey && !event.metaKey && !event.altKey && dialog.keys?.[event.key];
      if (!command || (event.target.tagName === "BUTTON" && [" ", "Enter"].includes(event.key))) return;
      event.preventDefault();
      command();
    };
    document.addEventListener("keydown", pressed);
    dialog.addEventListener("close", () => {
      document.removeEventListener("keydown", pressed);
      dialog.remove();
      if (before && before.isConnected && !isAsking()) before.focus({ preventScroll: true });
      done(value);
    });
    dialog.append(build(end, dialog));
    document.body.append(dialog);
    dialog.showModal();
  });
}

// A form with one field; null if it was canceled.
export function ask(title, { text = "", value = "", ok = "OK", field = {} }) {
  return show(title, (end) => {
    const input = element("input", { value, autocomplete: "off", spellcheck: false, autofocus: true, "aria-label": title, ...field });
    const form = element("form", { method: "dialog" }, element("p", { className: "soft" }, text), input,
      element("p", { className: "buttons" }, element("button", { className: "main" }, ok)));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (input.value.trim()) end(input.value.trim());
    });
    requestAnimationFrame(() => input.select());
    return form;
  });
}

export function confirm(title, text, ok) {
  return show(title, (end) => {
    const yes = element("button", { type: "button", className: "main", autofocus: true, onclick: () => end(true) }, ok);
    const no = element("button", { type: "button", onclick: () => end() }, "No");
    return element("div", {}, element("p", {}, text), element("p", { className: "buttons" }, yes, no));
  });
}

// Choose one of many by typing a part of its name; load(search) -> [{label, detail, picture, value}].
export function pick(title, { text = "", load }) {
  return show(title, (end) => {
    const input = element("input", {
      type: "search", placeholder: "Type a part of the name", autocomplete: "off", autofocus: true, maxLength: 120,
      role: "combobox", "aria-label": title, "aria-expanded": "true", "aria-controls": "choices",
    });
    const list = element("ul", { id: "choices", role: "listbox", "aria-label": title });
    let items = [], active = 0, turn = 0;
    const mark = () => {
      [...list.children].forEach((child, place) => child.setAttribute("aria-selected", place === active));
      list.children[active]?.scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", items.length ? `choice-${active}` : "");
    };
    const refresh = async () => {
      const own = ++turn;
      const found = await load(input.value);
      if (own !== turn) return;
      items = found;
      active = 0;
      list.replaceChildren(...items.map((item, place) => {
        const picture = item.picture ? element("img", { src: item.picture, alt: "", width: 36, height: 36 }) : "";
        return element("li", { id: `choice-${place}`, role: "option", onclick: () => end(item.value) }, picture,
          element("span", { className: "label" }, item.label), element("span", { className: "soft" }, item.detail ?? ""));
      }));
      if (!items.length) list.append(element("li", { className: "soft" }, "No match."));
      mark();
    };
    input.addEventListener("input", refresh);
    input.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        event.preventDefault();
        active = Math.max(0, Math.min(items.length - 1, active + step));
        mark();
      } else if (event.key === "Enter") {
        event.preventDefault();
        if (items[active]) end(items[active].value);
      }
    });
    refresh();
    return element("div", { className: "pick" }, element("p", { className: "soft" }, text), input, list);
  });
}

export function note(text, isBad = false) {
  const place = document.getElementById("notes");
  const said = element("p", { className: isBad ? "bad" : "" }, text);
  place.replaceChildren(said);
  setTimeout(() => said.remove(), isBad ? 9000 : 4000);
}
