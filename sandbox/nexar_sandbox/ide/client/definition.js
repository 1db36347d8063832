// The panel with the whole schema as text, as `GET /graphql?sdl` gives it: to search and to download.
import { h, icon, panel, useEffect, useMemo, useRef, useSchemaContext, useState } from "./elements.js";

const ADDRESS = "/graphql?sdl";
const KEYWORD = /^(type|input|enum|interface|union|scalar|directive|schema|extend)\b/;

export const definition = {
  title: "Schema Definition",
  icon: icon("M6 4 2 9l4 5", "M12 4l4 5-4 5", "M10 3 8 15"),
  content: () => h(Definition),
};

function Definition() {
  const { schema } = useSchemaContext({ nonNull: true });
  const [text, show] = useState("");
  const [wanted, want] = useState("");
  const [at, go] = useState(0);
  useEffect(() => {
    let left = false;
    const given = (response) => (response.ok ? response.text() : `# HTTP ${response.status}`);
    fetch(ADDRESS).then(given).catch((error) => `# ${error.message}`).then((said) => left || show(said));
    return () => (left = true);
  }, [schema]);
  const lines = useMemo(() => text.split("\n"), [text]);
  const found = useMemo(() => matching(lines, wanted.trim().toLowerCase()), [lines, wanted]);
  const current = found.length ? found[at % found.length] : -1;
  const step = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    go((before) => (before + (event.shiftKey ? found.length - 1 : 1)) % Math.max(found.length, 1));
  };
  return panel(
    "Schema Definition",
    h(
      "div",
      { className: "ide-row" },
      h("input", {
        type: "search",
        "aria-label": "Search the definition",
        placeholder: "Search; Enter for the next",
        value: wanted,
        onKeyDown: step,
        onChange: (event) => (want(event.target.value), go(0)),
      }),
      h("a", { className: "ide-button", href: ADDRESS, download: "schema.graphql" }, "Download"),
    ),
    h("p", { className: "ide-quiet", role: "status" }, wanted.trim() ? place(found, at) : `${lines.length} lines`),
    h(Text, { lines, current }),
  );
}

function Text({ lines, current }) {
  const shown = useRef(null);
  useEffect(() => {
    shown.current.children[current]?.scrollIntoView({ block: "center" });
  }, [current, lines]);
  const drawn = useMemo(() => lines.map((line, index) => h("span", { key: index, className: look(line) }, `${line}\n`)), [lines]);
  // Only the line that was found is drawn anew.
  const marked = current < 0 ? drawn : drawn.with?.(current, h("mark", { key: current }, `${lines[current]}\n`)) ?? drawn;
  return h("pre", { ref: shown, tabIndex: 0, className: "ide-definition", "aria-label": "Schema definition text" }, marked);
}

function place(found, at) {
  return found.length ? `${(at % found.length) + 1} of ${found.length}` : "Nothing found";
}

function matching(lines, wanted) {
  return wanted ? lines.flatMap((line, index) => (line.toLowerCase().includes(wanted) ? [index] : [])) : [];
}

function look(line) {
  if (KEYWORD.test(line)) return "ide-head";
  return line.trimStart().startsWith('"') ? "ide-quiet" : undefined;
}
