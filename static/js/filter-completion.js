// Completions of a filter text, from the declarations of its fields.

const MOST = 12;

/** Return the term before the caret: its start, and the parts that are written; null within quotes. */
function termBefore(text, caret) {
  const before = text.slice(0, caret);
  const start = before.search(/(?:[^\s"]|"[^"]*"?)*$/);
  const written = before.slice(start);
  const match = /^(-?)([A-Za-z_]+)(:|>=|<=|>|<|=)(.*)$/.exec(written);
  if (match) return { start, sign: match[1], field: match[2].toLowerCase(), operator: match[3], value: match[4] };
  const word = /^(-?)([A-Za-z_]*)$/.exec(written);
  return word ? { start, sign: word[1], field: word[2].toLowerCase(), operator: "", value: "" } : null;
}

/** Return what may replace the term before the caret: text, words about it, start and stop. */
export function completions(fields, text, caret) {
  const term = termBefore(text, caret);
  if (!term) return [];
  const place = { start: term.start, stop: caret };
  const known = fields.find((field) => field.name === term.field);
  if (!term.operator) {
    const named = fields.filter((field) => field.name.startsWith(term.field));
    return named.slice(0, MOST).map((field) => ({ ...place, text: `${term.sign}${field.name}${field.operators[0]}`, about: aboutOf(field) }));
  }
  if (!known) return [];
  // After a comma, another alternative is completed.
  const done = term.value.slice(0, term.value.lastIndexOf(",") + 1);
  const value = term.value.slice(done.length);
  const values = known.is_time ? ["10m", "1h", "24h", "7d"] : known.values;
  return values
    .filter((choice) => choice.startsWith(value) && choice !== value)
    .slice(0, MOST)
    .map((choice) => ({ ...place, text: `${term.sign}${known.name}${term.operator}${done}${choice}`, about: known.is_time ? "ago" : "", is_done: true }));
}

function aboutOf(field) {
  const unit = field.unit ? `, ${field.unit}` : "";
  return `${field.title}${unit} · ${field.operators.join(" ")}`;
}

/** Return the text with a completion, and where the caret is then. */
export function applied(text, item) {
  const end = item.is_done && text[item.stop] !== " " ? " " : "";
  const whole = text.slice(0, item.start) + item.text + end + text.slice(item.stop);
  return { text: whole, caret: item.start + item.text.length + end.length };
}
