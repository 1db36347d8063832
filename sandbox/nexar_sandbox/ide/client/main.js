// Mounts GraphiQL with the examples as its first tabs, and with the plug-in for access tokens.
import { Session, authorization } from "./authorization.js";

const { GraphiQL, React, ReactDOM } = window;
// As in ide.css: there the panels cover the editors until they are closed.
const NARROW = "(max-width: 48rem)";

// A library of GraphiQL makes a stylesheet while a dialog is open; the page's policy knows it by this.
window.__webpack_nonce__ = document.querySelector("meta[name=style-nonce]").content;

// GraphiQL stores the editors beside the tabs, and opens one more tab where the two differ, as before the first change.
function storeEditors(first) {
  const { tabs, activeTabIndex } = JSON.parse(localStorage.getItem("graphiql:tabState")) ?? { tabs: [first], activeTabIndex: 0 };
  for (const name of ["query", "variables"]) localStorage.setItem(`graphiql:${name}`, tabs[activeTabIndex][name] ?? "");
}

const examples = await (await fetch("/ide/assets/examples.json")).json();
const defaultTabs = examples.map(({ query, variables }) => ({ query, variables: JSON.stringify(variables, null, 2) }));
storeEditors(defaultTabs[0]);
const session = new Session();
const plugin = authorization(session);
const properties = {
  fetcher: session.fetcher,
  plugins: [plugin],
  visiblePlugin: window.matchMedia(NARROW).matches ? undefined : plugin,
  defaultTabs,
  defaultQuery: "",
  defaultEditorToolsVisibility: "variables",
  shouldPersistHeaders: false,
};
ReactDOM.createRoot(document.getElementById("ide")).render(React.createElement(GraphiQL, properties));
