// The panel of documents: the open tabs, which this browser keeps, and ready ones to open.
import { h, icon, panel, useEditorContext, useOpen } from "./elements.js";

export const documents = (examples) => ({
  title: "Documents",
  icon: icon("M3 2h7l4 4v10H3z", "M10 2v4h4", "M6 9h6", "M6 12h6"),
  content: () => h(Documents, { examples }),
});

function Documents({ examples }) {
  const editor = useEditorContext({ nonNull: true });
  const open = useOpen();
  return panel(
    "Documents",
    h("p", { className: "ide-quiet" }, "Open documents are kept in this browser; their headers are not."),
    h("ul", { className: "ide-list", "aria-label": "Open documents" }, editor.tabs.map((tab, index) => h(Tab, { key: tab.id, tab, index, editor }))),
    h("button", { type: "button", className: "ide-button", onClick: () => editor.addTab() }, "New document"),
    h("h3", null, "Examples"),
    h(
      "ul",
      { className: "ide-list", "aria-label": "Examples" },
      examples.map(({ name, about, query, variables }) =>
        h(
          "li",
          { key: name },
          h(
            "button",
            { type: "button", onClick: () => open(query, variables && JSON.stringify(variables, null, 2)) },
            h("strong", null, name),
            h("span", { className: "ide-quiet" }, about),
          ),
        ),
      ),
    ),
    h("p", { className: "ide-quiet" }, "Made with GraphiQL: ", h("a", { href: "/ide/assets/LICENSES.txt" }, "licences"), "."),
  );
}

function Tab({ tab, index, editor }) {
  const active = index === editor.activeTabIndex;
  return h(
    "li",
    null,
    h("button", { type: "button", "aria-current": active, onClick: () => editor.changeTab(index) }, h("strong", null, tab.title)),
    editor.tabs.length > 1 &&
      h("button", { type: "button", className: "ide-close", "aria-label": `Close ${tab.title}`, onClick: () => editor.closeTab(index) }, "×"),
  );
}
