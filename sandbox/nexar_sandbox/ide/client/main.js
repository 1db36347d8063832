// Puts the IDE together: GraphiQL's editors with the sandbox's own panels and authorization.
import { fetcher } from "./query_fetcher.js";
import { Bar } from "./bar.js";
import { definition } from "./definition.js";
import { documents } from "./documents.js";
import { h, useEffect, useMemo } from "./elements.js";
import { Hint } from "./hint.js";
import { agree } from "./stored_documents.js";
import { reference } from "./reference.js";
import { Session, useSession } from "./session.js";

const { GraphiQL } = window;
// As in ide.css.
const NARROW = "(max-width: 48rem)";
const NEW = "# Type a query: Ctrl-Space completes it, Ctrl-Enter runs it.\n";

// A library of GraphiQL's makes a stylesheet while a dialog is open; the page's policy knows it by this.
window.__webpack_nonce__ = document.querySelector("meta[name=style-nonce]").content;

function Ide({ session, examples }) {
  useEffect(nameRegions, []);
  const ask = useMemo(() => fetcher(session), [session]);
  const plugins = useMemo(() => [documents(examples), reference, definition], [examples]);
  return h(
    GraphiQL,
    {
      fetcher: ask,
      plugins,
      // Where panels are above the editors, they open when they are wanted.
      visiblePlugin: window.matchMedia(NARROW).matches ? undefined : "Documents",
      defaultQuery: NEW,
      defaultEditorToolsVisibility: "variables",
      shouldPersistHeaders: false,
    },
    h(GraphiQL.Logo, null, h(Bar, { session })),
    h(GraphiQL.Footer, null, h(Hint, { session }), h(Last, { session })),
  );
}

function Last({ session }) {
  const { last } = useSession(session);
  return last && h("p", { className: "ide-last", role: "status" }, last);
}

// The panels have the names that the service's documents use.
function nameRegions() {
  document.querySelector(".graphiql-query-editor").setAttribute("aria-label", "Operations");
  const response = document.querySelector(".graphiql-response");
  response.setAttribute("role", "region");
  response.setAttribute("aria-label", "Response");
}

const examples = await (await fetch("/ide/assets/examples.json")).json();
agree(examples[0]);
window.ReactDOM.createRoot(document.getElementById("ide")).render(h(Ide, { session: new Session(), examples }));
