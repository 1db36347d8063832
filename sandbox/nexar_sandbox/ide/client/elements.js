// React's words for all panels: there is no build step, so elements are made by calls.
export const { createElement: h, useEffect, useMemo, useRef, useState, useSyncExternalStore } = window.React;
export const graphql = window.GraphiQL.GraphQL;
export const { useEditorContext, useExecutionContext, usePluginContext, useSchemaContext } = window.GraphiQL.React;

// An icon of lines in the size that the sidebar wants.
export function icon(...paths) {
  return function Icon(props) {
    const lines = paths.map((d) => h("path", { key: d, d, stroke: "currentColor", strokeWidth: 1.5, fill: "none" }));
    return h("svg", { viewBox: "0 0 18 18", height: "1em", ...props }, lines);
  };
}

export function panel(title, ...content) {
  return h("section", { className: "ide-panel", "aria-label": title }, h("h2", null, title), ...content);
}

// Opens a document in a tab of its own.
export function useOpen() {
  const editor = useEditorContext({ nonNull: true });
  return (query, variables) => {
    // The editors are filled by the new tab first, then with the document.
    window.ReactDOM.flushSync(() => editor.addTab());
    editor.queryEditor.setValue(query);
    editor.variableEditor?.setValue(variables ?? "");
    editor.queryEditor.focus();
  };
}
