// Dialogs. Each closes with Escape and then restores the focus.

// Create an element. Fields that are properties of it, such as `onclick`, are set as properties, others as attributes.
export function element(tag, fields = {}, ...children) {
  const created = document.createElement(tag);
  for (const [name, value] of Object.entries(fields)) {
    if (name in created && !name.includes("-")) created[name] = value;
    else created.setAttribute(name, value);
  }
  created.append(...children);
  return created;
}

export const isDialogOpen = () => document.querySelector("dialog[open]") !== null;

// Show a dialog; resolves to the value of `end(value)`, which closes it, or to null after Escape. `dialog.keys` are its
// own keys; they work wherever the focus is, because a button that is disabled loses it.
export function show(title, build, { className = "" } = {}) {
  const before = document.activeElement;
  const heading = element("h2", { id: `title-${Math.random().toString(36).slice(2)}` }, title);
  const close = element("button", { type: "button", className: "close", "aria-label": "Close", onclick: () => dialog.close() }, "×");
  const dialog = element("dialog", { className, "aria-labelledby": heading.id }, element("div", { className: "head" }, heading, close));
  return new Promise((done) => {
    let value = null;
    const end = (result = null) => { value = result; dialog.close(); };
    const onKey = (event) => {
      if (!dialog.open) return; // closed, and not removed yet
      const command = !event.ctrlKey && !event.metaKey && !event.altKey && dialog.keys?.[event.key];
      if (!command || (event.target.tagName === "BUTTON" && [" ", "Enter"].includes(event.key))) return;
      event.preventDefault();
      command();
    };
    document.addEventListener("keydown", onKey);
    dialog.addEventListener("close", () => {
      document.removeEventListener("keydown", onKey);
      dialog.remove();
      if (before && before.isConnected && !isDialogOpen()) before.focus({ preventScroll: true });
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
    let items = [], active = 0, nRequests = 0;
    const mark = () => {
      [...list.children].forEach((child, place) => child.setAttribute("aria-selected", place === active));
      list.children[active]?.scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", items.length ? `choice-${active}` : "");
    };
    const refresh = async () => {
      const number = ++nRequests;
      const loaded = await load(input.value);
      if (number !== nRequests) return; // the text has changed since
      items = loaded;
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
  const message = element("p", { className: isBad ? "bad" : "" }, text);
  place.replaceChildren(message);
  setTimeout(() => message.remove(), isBad ? 9000 : 4000);
}
