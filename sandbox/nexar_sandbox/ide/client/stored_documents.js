// What this browser keeps of the documents. GraphiQL keeps the tabs, and beside them what is in the editors, which it
// takes for a further document where the two differ: before it starts, they are made to agree.
const TABS = "graphiql:tabState";
const EDITORS = ["query", "variables"];

export function agree(first) {
  const active = activeTab() ?? { query: first.query, variables: JSON.stringify(first.variables, null, 2) };
  for (const name of EDITORS) localStorage.setItem(`graphiql:${name}`, active[name] ?? "");
}

function activeTab() {
  try {
    const { tabs, activeTabIndex } = JSON.parse(localStorage.getItem(TABS));
    return tabs[activeTabIndex];
  } catch {
    return undefined; // nothing is kept, or nothing that can be read
  }
}
