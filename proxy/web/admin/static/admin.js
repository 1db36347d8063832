// Live regions: the page is fetched again every two seconds while it is visible, and the content of the elements with
// `data-live` is replaced by the new one. Without this script a page shows the state of its loading.
"use strict";

const SECONDS = 2;
const regions = () => document.querySelectorAll("[data-live][id]");
const state = document.getElementById("live");
let timer = 0;
let running = false;

function show(text) {
  state.textContent = text;
  state.hidden = false;
}

// What a person fills in, or has selected to copy, must not be replaced under them.
function inUse(region) {
  const field = document.activeElement;
  const fills = region.contains(field) && field.matches("input, select, textarea");
  const selection = document.getSelection();
  return fills || (selection && !selection.isCollapsed && selection.containsNode(region, true));
}

function replace(page) {
  for (const region of regions()) {
    const fresh = page.getElementById(region.id);
    if (!fresh || fresh.innerHTML === region.innerHTML || inUse(region)) continue;
    const focused = region.contains(document.activeElement) ? document.activeElement.id : "";
    const open = new Set([...region.querySelectorAll("details[open][id]")].map((each) => each.id));
    const scrolled = [...region.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
    region.innerHTML = fresh.innerHTML;
    for (const each of region.querySelectorAll("details[id]")) each.open = each.open || open.has(each.id);
    region.querySelectorAll(".scroll").forEach((each, place) => { each.scrollLeft = scrolled[place] || 0; });
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }
}

async function poll() {
  if (running || document.hidden) return;
  running = true;
  try {
    const response = await fetch(location.href, { cache: "no-store" });
    if (response.status === 401) {
      show("Signed out: reload the page");
      return;
    }
    if (!response.ok) throw new Error(String(response.status));
    replace(new DOMParser().parseFromString(await response.text(), "text/html"));
    show("Live");
  } catch {
    show("Not live: the service does not respond");
  } finally {
    running = false;
  }
  plan();
}

function plan() {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(poll, SECONDS * 1000);
}

// A result of a form (a POST) cannot be fetched again, and a page without live regions need not be.
if (state && regions().length) {
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : poll()));
  show("Live");
  plan();
}
