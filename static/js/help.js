// The page Help: show the words that have the typed text, and hide letters without any.

const field = document.getElementById("find-word");
const sections = [...document.querySelectorAll("#words section")];

function find() {
  const wanted = field.value.trim().toLowerCase();
  for (const section of sections) {
    const terms = [...section.querySelectorAll("dl > div")];
    for (const term of terms) term.hidden = !term.textContent.toLowerCase().includes(wanted);
    section.hidden = terms.every((term) => term.hidden);
  }
  document.getElementById("no-word").hidden = sections.some((section) => !section.hidden);
}

field.addEventListener("input", find);
find();
