// The dialog about authorization: by which grant, the settings of the authorization code flow, and a button that runs it.
import { h, useState } from "./elements.js";
import { useSession } from "./session.js";

const NAMES = { client_credentials: "Client credentials", authorization_code: "Authorization code" };
const LABELS = {
  authorize_url: "Authorize URL",
  token_url: "Token URL",
  client_id: "Client id",
  redirect_uri: "Redirect URI",
  code_challenge_method: "PKCE",
};

export function AuthorizationDialog({ session, dialog }) {
  const { application, organisation, links } = useSession(session);
  return h(
    "dialog",
    { ref: dialog, className: "ide-dialog", "aria-labelledby": "ide-authorization" },
    h(
      "header",
      null,
      h("h2", { id: "ide-authorization" }, "Authorization"),
      h("button", { type: "button", className: "ide-button", onClick: () => dialog.current.close() }, "Close"),
    ),
    h("p", null, h(State, { session })),
    application
      ? h(Flow, { key: application.application_id, session, application })
      : h("p", null, `${organisation} has no application; make one in the portal.`),
    h("p", { className: "ide-quiet" }, "Another application is chosen in the ", h("a", { href: links.portal }, "portal"), "."),
  );
}

function State({ session }) {
  const { application, user, token } = useSession(session);
  if (!token) return "There is no token; queries are sent without one.";
  const until = new Date(token.expires_at * 1000).toLocaleString();
  return `Authorized as ${application?.name}${token.by_user ? ` for ${user.name}` : ""}, until ${until}.`;
}

function Flow({ session, application }) {
  const [grant, choose] = useState(application.grant);
  const [scope, ask] = useState(application.settings.scope);
  const run = (event) => {
    event.preventDefault();
    session.authorize(grant, scope);
  };
  return h(
    "form",
    { onSubmit: run },
    h(
      "fieldset",
      null,
      h("legend", null, "Grant"),
      application.grants.map((name) =>
        h(
          "label",
          { key: name },
          h("input", { type: "radio", name: "grant", checked: grant === name, onChange: () => choose(name) }),
          NAMES[name],
        ),
      ),
    ),
    grant === "authorization_code" && h(Settings, { settings: application.settings, scope, ask }),
    h("button", { type: "submit", className: "ide-primary" }, "Authorize"),
  );
}

function Settings({ settings, scope, ask }) {
  const rows = Object.entries(LABELS).flatMap(([name, label]) => [
    h("dt", { key: name }, label),
    h("dd", { key: `${name}=` }, h("code", null, settings[name])),
  ]);
  return h(
    "div",
    null,
    h("dl", null, rows),
    h("label", { htmlFor: "ide-scope" }, "Scopes"),
    h("textarea", { id: "ide-scope", rows: 2, value: scope, onChange: (event) => ask(event.target.value) }),
  );
}
