// The page of a run: copies its address.

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy-address]");
  if (!button) return;
  navigator.clipboard?.writeText(location.href).then(() => { button.querySelector("span").textContent = "Copied"; });
});
