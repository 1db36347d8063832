"use strict";
// The file stays here: it is sent to be read, whenever an option changes, and to be filled.
const byId = (id) => document.getElementById(id);
const ROLES = { mpn: "part number", manufacturer: "manufacturer", sku: "SKU", quantity: "quantity" };
let file, most, link, running, sentKey, timer;
let named = []; // roles that were chosen by hand, such as mpn=Heading

const shown = (number) => number.toLocaleString("en");
const counted = (number, word) => `${shown(number)} ${word}${number === 1 ? "" : "s"}`;

function element(name, content, className = "") {
  const made = document.createElement(name);
  made.append(content);
  made.className = className;
  return made;
}

function fillList(id, texts) {
  byId(id).querySelector("ul").replaceChildren(...texts.map((each) => element("li", each)));
  byId(id).hidden = !texts.length;
}

function row(...cells) {
  const made = element("tr", "");
  made.append(...cells.map((each, place) => element("td", each, place ? "n corner" : "")));
  return made;
}

function options() {
  const checked = [...document.querySelectorAll(".checks :checked")].map((box) => box.value);
  const columns = [...checked, byId("more").value].filter(Boolean).join(",");
  const asked = new URLSearchParams({ name: file.name, columns });
  if (byId("boards").value) asked.append("boards", byId("boards").value);
  for (const each of named) asked.append("read", each);
  if (byId("sheet").value) asked.append("read", `sheet=${byId("sheet").value}`);
  return asked;
}

async function* events(asked, signal) {
  const headers = { token: encodeURIComponent(sentKey) };
  const response = await fetch(`?${asked}`, { method: "POST", headers, body: file, signal });
  if (!response.ok) throw Error((await response.json()).message);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) yield JSON.parse(line);
  }
}

// Stops the process of the request before, of which nothing more is shown.
function stop() {
  running?.abort();
  running = null;
}

async function send(asked) {
  stop();
  const own = (running = new AbortController());
  sentKey = byId("key").value;
  document.querySelector("main").ariaBusy = true;
  byId("fill").disabled = byId("error").hidden = byId("result").hidden = true;
  byId("most").textContent = "…";
  try {
    for await (const event of events(asked, own.signal)) for (const name in event) SHOW[name](event[name]);
  } catch (error) {
    if (own === running) SHOW.error(error.message);
  }
  if (own !== running) return;
  byId("progress").hidden = true;
  document.querySelector("main").ariaBusy = false;
}

const SHOW = {
  error(message) {
    byId("error").textContent = message;
    byId("error").hidden = false;
    byId("cost").hidden = true;
  },
  recognized(found) {
    byId("options").hidden = false;
    byId("header").textContent = `headings in row ${found.header_row}`;
    byId("sheets").hidden = found.sheets.length < 2;
    byId("sheet").replaceChildren(...found.sheets.map((each) => new Option(each, each, false, each === found.sheet)));
    const columns = found.columns.map(([name, heading, role]) => row(`${name} ${heading}`, roleOf(heading, role)));
    byId("columns").replaceChildren(...columns);
    fillList("notes", []);
  },
  notes: (notes) => fillList("notes", notes),
  cost(cost) {
    most = cost.most;
    byId("most").textContent = shown(most);
    const left = cost.left === null ? "" : ` Your key has ${counted(cost.left, "part")} left.`;
    byId("cost-text").textContent =
      `${counted(cost.lines, "line")}: likely ${counted(cost.parts_if_one, "part")}, one for each number; ` +
      `${cost.stored} of ${cost.queries} numbers were fetched today and are free.${left}`;
    byId("fill").disabled = byId("cost").hidden = false;
  },
  progress({ done, of, parts }) {
    Object.assign(byId("progress"), { value: done, max: of });
    byId("progress-text").textContent = `${done} of ${of}, ${counted(parts, "part")}`;
  },
  result(result) {
    const bytes = Uint8Array.from(atob(result.file), (letter) => letter.charCodeAt(0));
    URL.revokeObjectURL(link);
    link = URL.createObjectURL(new Blob([bytes]));
    Object.assign(byId("download"), { href: link, download: result.name });
    byId("outcome").textContent = result.outcome;
    const stopped = result.stopped ? ` Stopped: ${result.stopped}.` : "";
    byId("progress-text").textContent = `${counted(result.parts, "part")} spent.${stopped}`;
    byId("currency").textContent = result.currency;
    byId("totals").tBodies[0].replaceChildren(...result.totals.map((each) => row(...each)));
    byId("totals").hidden = !result.totals.length;
    for (const name of ["changed", "reasons"]) fillList(name, result[name]);
    byId("result").hidden = byId("fill").disabled = false;
    byId("result").scrollIntoView({ behavior: "smooth" });
  },
};

function roleOf(heading, role) {
  const select = element("select", new Option(Object.values(ROLES).includes(role) ? "not used" : role || "not used", ""));
  for (const [value, text] of Object.entries(ROLES)) select.append(new Option(text, value, false, text === role));
  select.setAttribute("aria-label", `role of ${heading}`);
  select.dataset.heading = heading;
  return select;
}

function read() {
  clearTimeout(timer);
  if (!file) return;
  stop();
  document.querySelector("main").ariaBusy = byId("key").value !== "";
  if (byId("key").value) timer = setTimeout(() => send(options()), 300); // others may follow
  else SHOW.error("enter your API key: it pays for the parts");
}

byId("key").addEventListener("change", () => byId("key").value === sentKey || read());
byId("file").addEventListener("change", () => {
  [file] = byId("file").files;
  byId("file").value = ""; // so that the same file, changed, can be dropped again
  named = [];
  byId("sheet").replaceChildren();
  byId("name").textContent = file?.name ?? "Drop a parts list here";
  byId("options").hidden = byId("cost").hidden = true;
  read();
});
byId("options").addEventListener("change", ({ target }) => {
  const selects = [...byId("columns").querySelectorAll("select")].filter((select) => select.value);
  if (target.dataset.heading !== undefined) named = selects.map((each) => `${each.value}=${each.dataset.heading}`);
  if (target.id === "sheet") named = [];
  read();
});
byId("fill").addEventListener("click", () => {
  const asked = options();
  asked.append("budget", most);
  byId("progress").removeAttribute("value");
  byId("progress").hidden = false;
  send(asked);
});
