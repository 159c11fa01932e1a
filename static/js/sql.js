// The statement of the page Results: Ctrl+Enter runs it.

document.getElementById("statement")?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  event.target.form.requestSubmit();
});
