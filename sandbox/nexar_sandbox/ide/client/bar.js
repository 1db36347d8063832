// Above the editors: who has signed in, the application and its parts, and the dialog about authorization.
import { h, useRef } from "./elements.js";
import { useSession } from "./session.js";
import { AuthorizationDialog } from "./authorization.js";

export function Bar({ session }) {
  const dialog = useRef(null);
  const { loading, user, application, links, token, problem } = useSession(session);
  if (loading) return h("div", { className: "ide-bar", role: "status" }, "Authorizing…");
  const alert = problem && h("span", { className: "ide-problem", role: "alert" }, problem);
  if (!user) {
    return h("div", { className: "ide-bar" }, alert, h("a", { className: "ide-primary", href: links.sign_in }, "Sign in"));
  }
  return h(
    "div",
    { className: "ide-bar" },
    alert,
    application && h(Parts, { application }),
    h(
      "button",
      { type: "button", className: "ide-button", onClick: () => dialog.current.showModal() },
      h("span", { className: token ? "ide-dot ide-good" : "ide-dot", "aria-hidden": true }),
      "Authorization",
    ),
    h("a", { href: links.portal }, "Portal"),
    h("a", { href: links.account, title: user.email }, user.name),
    h(AuthorizationDialog, { session, dialog }),
  );
}

function Parts({ application }) {
  const { name, parts_used: used, part_limit: limit } = application;
  return h(
    "span",
    { className: "ide-parts", title: `Parts of this month that ${name} has used` },
    h("span", { className: "ide-name" }, name),
    h("meter", { min: 0, max: Math.max(limit, 1), value: Math.min(used, limit), "aria-label": "Parts used" }),
    h("span", { className: "ide-used" }, `${used} of ${limit} parts`),
  );
}
