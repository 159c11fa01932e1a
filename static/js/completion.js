// Completion of the word before the caret: a list below the field, chosen by keys or by a click.

const MOST = 8;
let lists = 0;

function ranked(words, prefix) {
  const wanted = prefix.toLowerCase();
  const places = words.map((word) => [word.name.toLowerCase().indexOf(wanted), word]);
  return places.filter(([place, word]) => place >= 0 && word.name !== prefix)
    .sort((a, b) => a[0] - b[0]).slice(0, MOST).map(([, word]) => word);
}

function option(list, word, index) {
  const item = document.createElement("li");
  item.id = `${list.id}-${index}`;
  item.setAttribute("role", "option");
  for (const text of [word.written ?? word.name, word.about]) {
    const part = document.createElement("span");
    part.textContent = text;
    item.append(part);
  }
  return item;
}

function listFor(field) {
  const list = document.createElement("ul");
  list.className = "completions";
  list.id = `completions-${(lists += 1)}`;
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Completions");
  let wrap = field.parentElement;
  if (!wrap.classList.contains("code-field")) {
    wrap = document.createElement("div");
    wrap.className = "code-field";
    field.replaceWith(wrap);
    wrap.append(field);
  }
  wrap.append(list);
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  field.setAttribute("autocomplete", "off");
  return list;
}

// `words(prefix)` returns {name, about, written}; `pattern` matches the word at the end of a text.
export function startCompletion(field, words, pattern) {
  const list = listFor(field);
  let shown = [];
  let chosen = -1;
  let asked = 0;

  const prefix = () => pattern.exec(field.value.slice(0, field.selectionStart))?.[0] ?? "";
  const close = () => { list.hidden = true; shown = []; field.removeAttribute("aria-activedescendant"); };
  const choose = (index) => {
    chosen = (index + shown.length) % shown.length;
    [...list.children].forEach((item, place) => item.setAttribute("aria-selected", String(place === chosen)));
    list.children[chosen].scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", list.children[chosen].id);
  };
  const open = async (wanted) => {
    const request = (asked += 1);
    const found = ranked(await words(wanted), wanted);
    if (request !== asked || document.activeElement !== field) return;
    if (!found.length) { close(); return; }
    shown = found;
    chosen = -1;
    list.replaceChildren(...found.map((word, index) => option(list, word, index)));
    field.removeAttribute("aria-activedescendant");
    list.hidden = false;
  };
  const accept = (index) => {
    const wanted = prefix();
    const word = shown[index];
    const text = word.written?.includes("(") ? `${word.name}(` : word.name;
    const start = field.selectionStart - wanted.length;
    field.setRangeText(text, start, field.selectionStart, "end");
    close();
    field.dispatchEvent(new Event("input", { bubbles: true }));
    close();
  };

  field.addEventListener("input", () => {
    const wanted = prefix();
    asked += 1;
    if (wanted) open(wanted);
    else close();
  });
  field.addEventListener("blur", () => setTimeout(close, 150));
  field.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) { event.preventDefault(); open(prefix()); return; }
    if (list.hidden) return;
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen < 0 ? -1 : chosen - 1);
    else if (event.key === "Enter" && chosen >= 0) accept(chosen);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  list.addEventListener("mousedown", (event) => {
    event.preventDefault();
    const item = event.target.closest("li");
    if (item) accept([...list.children].indexOf(item));
  });
}
