// What the response panel says while it has no response: how to run the operation, or what is missing for it.
import { h, useEditorContext, useExecutionContext } from "./elements.js";
import { useSession } from "./session.js";

export function Hint({ session }) {
  const { tabs, activeTabIndex } = useEditorContext({ nonNull: true });
  const { isFetching, isSubscribed } = useExecutionContext({ nonNull: true });
  const state = useSession(session);
  if (state.loading || isFetching || isSubscribed || tabs[activeTabIndex]?.response) return null;
  return h("div", { className: "ide-hint" }, h("div", { role: state.refused ? "alert" : "status" }, advice(state)));
}

function advice({ user, organisation, application, token, token_required: required, links, refused }) {
  if (token || !required) return h("p", null, "Run the operation with the ▶ button or Ctrl-Enter. The response appears here.");
  if (!user) {
    const said = refused ? "You are not signed in. Sign in to run this operation." : "Sign in to run operations. The response appears here.";
    return [h("p", { key: "said" }, said), h("a", { key: "link", className: "ide-primary", href: links.sign_in }, "Sign in")];
  }
  if (!application) {
    return h("p", null, `${organisation} has no application to run operations with; make one in the `, h("a", { href: links.portal }, "portal"), ".");
  }
  return h("p", null, "There is no access token: open Authorization above.");
}
