"use strict";
// Filters the groups of differences. The page can be read without: then the form stays hidden.
(() => {
  const form = document.getElementById("filters");
  if (!form) return;
  const groups = Array.from(document.querySelectorAll("details.group"), (element) => ({
    element,
    clients: JSON.parse(element.dataset.clients),
    text: element.textContent.toLowerCase(),
  }));
  const fields = form.elements;

  const fits = ({ element, clients, text }) =>
    ["endpoint", "kind", "cause"].every((name) => !fields[name].value || element.dataset[name] === fields[name].value) &&
    (!fields.client.value || clients.includes(fields.client.value)) &&
    (!fields.counts.checked || "counts" in element.dataset) &&
    text.includes(fields.text.value.trim().toLowerCase());

  const apply = () => {
    let shown = 0;
    for (const group of groups) {
      const visible = fits(group);
      group.element.hidden = !visible;
      shown += visible;
    }
    fields.shown.value = `${shown} of ${groups.length} shown`;
  };

  // The choice is kept in the address, so that it can be passed on.
  const keep = () => {
    const chosen = [...new FormData(form)].filter(([, value]) => value);
    const text = new URLSearchParams(chosen).toString();
    try {
      history.replaceState(null, "", text ? `#?${text}` : location.pathname);
    } catch {
      // A page in a frame without an origin has no address to keep it in.
    }
  };
  const restore = () => {
    if (!location.hash.startsWith("#?")) return;
    for (const [name, value] of new URLSearchParams(location.hash.slice(2))) {
      if (name === "counts") fields.counts.checked = true;
      else if (["endpoint", "kind", "cause", "client", "text"].includes(name)) fields[name].value = value;
    }
    for (const select of form.querySelectorAll("select")) if (select.selectedIndex < 0) select.value = "";
  };

  for (const event of ["input", "change"]) form.addEventListener(event, () => (apply(), keep()));
  form.addEventListener("reset", () => setTimeout(() => (apply(), keep())));
  form.addEventListener("submit", (event) => event.preventDefault());
  restore();
  form.hidden = false;
  apply();

  // Paper shows every group that is on the screen, opened.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = groups.filter(({ element }) => !element.open).map(({ element }) => element);
    for (const element of opened) element.open = true;
  });
  addEventListener("afterprint", () => {
    for (const element of opened) element.open = false;
  });
})();
