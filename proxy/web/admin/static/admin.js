// Live pages, and tables that are sorted and filtered.
//
// Every two seconds a visible page sends the digests of its pieces (elements with `data-live`), and gets
// those with another content. They are changed in place, so that focus, selection, scroll positions, what is open and
// what is filled in stay. Without this script a page shows the state of its loading.
"use strict";

const SECONDS = 2;
const PIECES_MAX = 1600; // digests that fit into a header; pieces beyond them are sent each time
const pieces = () => [...document.querySelectorAll("[data-live]")];
const state = document.getElementById("live");
let timer = 0;
let running = false;

function show(text) {
  state.textContent = text;
  state.hidden = false;
}

// To change, move or remove the node would change what somebody has selected to copy.
function isSelected(node) {
  const selection = document.getSelection();
  return !selection.isCollapsed && selection.containsNode(node, true);
}

// Return whether nothing had to wait for the end of a selection.
function unlessSelected(node, action) {
  const waits = isSelected(node);
  if (!waits) action();
  return !waits;
}

// Make the node like the fresh one; return whether all of it could be changed.
function update(node, fresh) {
  if (node.nodeType !== Node.ELEMENT_NODE) {
    return node.data === fresh.data || unlessSelected(node, () => { node.data = fresh.data; });
  }
  if (node.hasAttribute("data-live")) return true; // a piece of its own
  for (const { name } of [...node.attributes]) {
    if (name !== "open" && !fresh.hasAttribute(name)) node.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  return updateChildren(node, fresh);
}

// Children with an id are kept by it, others by their kind and order.
function updateChildren(parent, fresh) {
  const wanted = new Set([...fresh.children].map((child) => child.id));
  const isGone = (child) => child.id && !wanted.has(child.id);
  let isDone = true;
  const attempt = (child, action) => { isDone = unlessSelected(child, action) && isDone; };
  for (const child of [...parent.children].filter(isGone)) attempt(child, () => child.remove());

  let next = parent.firstChild;
  for (const child of [...fresh.childNodes]) {
    while (next && isGone(next)) next = next.nextSibling; // it waits
    let kept = next;
    if (child.id) {
      while (kept && kept.id !== child.id) kept = kept.nextSibling;
      while (kept && next !== kept && !next.id) next = removed(next, attempt);
    } else if (next && (next.id || next.nodeName !== child.nodeName)) {
      kept = null;
    }
    if (!kept) {
      parent.insertBefore(child, next);
      continue;
    }
    if (kept === next) next = next.nextSibling;
    else attempt(kept, () => parent.insertBefore(kept, next));
    isDone = update(kept, child) && isDone;
  }
  while (next) next = removed(next, attempt);
  return isDone;
}

function removed(node, attempt) {
  const next = node.nextSibling;
  attempt(node, () => node.remove());
  return next;
}

function apply(changes) {
  const focused = document.activeElement;
  for (const [id, digest, html] of changes) {
    const piece = document.getElementById(id);
    if (!piece) continue; // in a part of the page that only a reload renews
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    if (updateChildren(piece, fresh.content)) piece.dataset.live = digest;
  }
  if (document.activeElement !== focused && focused.isConnected) focused.focus({ preventScroll: true });
}

async function poll() {
  if (running || document.hidden) return;
  running = true;
  try {
    const held = pieces().map((piece) => piece.dataset.live).slice(0, PIECES_MAX).join(" ");
    const response = await fetch(location.href, { cache: "no-store", headers: { "V3bridge-Held": held } });
    if (response.status === 401) {
      show("Signed out: reload the page");
      return;
    }
    if (!response.ok) throw new Error(String(response.status));
    if (response.status !== 204) {
      apply(await response.json());
      arrange();
    }
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

// Tables with a head and several rows. Their order and filter are set again after each renewal, which undoes both.
const LONG = 10; // rows from which a table is worth a filter
const filter = document.getElementById("filter");
const orders = new Map(); // by the table's place on the page: column and direction
const tables = () => [...document.querySelectorAll("table")].filter((table) => table.tHead && table.tBodies.length);
const shown = (cell) => cell.innerText.trim();
const number = (text) => parseFloat(text.replaceAll(",", ""));
const isNumeric = (table, column) => table.tHead.rows[0].cells[column].classList.contains("n");

function compare(a, b, numeric) {
  if (!numeric) return a.localeCompare(b, undefined, { numeric: true });
  const [x, y] = [number(a), number(b)];
  if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
  return x - y;
}

function sortRows(table, { column, descending }) {
  const numeric = isNumeric(table, column);
  for (const body of table.tBodies) {
    const rows = [...body.rows].filter((row) => row.cells.length > column);
    const keys = new Map(rows.map((row) => [row, shown(row.cells[column])]));
    const sorted = [...rows].sort((a, b) => compare(keys.get(a), keys.get(b), numeric) * (descending ? -1 : 1));
    if (sorted.some((row, place) => row !== rows[place])) body.append(...sorted);
  }
}

function arrange() {
  const wanted = filter.value.trim().toLowerCase();
  tables().forEach((table, place) => {
    const order = orders.get(place);
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      head.tabIndex = 0;
      head.ariaSort = order?.column === column ? (order.descending ? "descending" : "ascending") : "none";
    });
    const focused = document.activeElement;
    if (order) sortRows(table, order);
    if (document.activeElement !== focused && focused.isConnected) focused.focus({ preventScroll: true });
    for (const body of table.tBodies) {
      for (const row of body.rows) row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
    }
  });
}

function sortBy(event) {
  const head = event.target.closest?.("thead th");
  const table = head?.closest("table");
  if (!table || event.target.closest("a, button, input")) return;
  const place = tables().indexOf(table);
  const [column, before] = [head.cellIndex, orders.get(place)];
  // Numbers are asked for to see the greatest.
  const descending = before?.column === column ? !before.descending : isNumeric(table, column);
  orders.set(place, { column, descending });
  arrange();
}

if (tables().some((table) => [...table.tBodies].some((body) => body.rows.length > 1))) {
  document.addEventListener("click", sortBy);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches("thead th")) sortBy(event);
  });
  filter.addEventListener("input", arrange);
  filter.parentElement.hidden = !tables().some((table) => [...table.tBodies].some((body) => body.rows.length >= LONG));
  arrange();
}

// A page without pieces need not be renewed.
if (state && pieces().length) {
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : poll()));
  show("Live");
  plan();
}
