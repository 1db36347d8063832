// GraphiQL plug-in for access tokens: signs in, authorizes an application, and sends its token with every operation.
// The server requests and caches the tokens; secrets and refresh tokens do not reach the page.
const { createElement: h, useState, useSyncExternalStore } = window.React;

const PATH = "/graphql";
// Replaced by the token in variables: some subscriptions want it there.
const PLACEHOLDER = "{{token}}";
// Seconds before its expiry at which a token is renewed.
const MARGIN = 60;
// Kept while the browser is at the authorization endpoint.
const SENT = "ide:sent";
const GRANTS = { client_credentials: "Client credentials", authorization_code: "Authorization code" };
const SETTINGS = {
  authorize_url: "Authorize URL",
  token_url: "Token URL",
  client_id: "Client id",
  redirect_uri: "Redirect URI",
  code_challenge_method: "PKCE",
};

export class Session {
  #listeners = new Set();
  #csrf = "";
  #begun;

  constructor() {
    this.state = { user: null, application: null, links: {}, token: null, problem: "", status: "" };
    this.#begun = this.#begin();
  }

  subscribe = (listener) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  snapshot = () => this.state;

  fetcher = async (params, options) => {
    const introspects = params.operationName === "IntrospectionQuery";
    const ownToken = Object.keys(options?.headers ?? {}).some((name) => name.toLowerCase() === "authorization");
    // The schema is public: it is loaded before the sign-in.
    const token = introspects || ownToken ? "" : await this.#currentToken();
    const authorization = token ? { Authorization: `Bearer ${token}` } : {};
    const send = window.GraphiQL.createFetcher({
      url: PATH,
      headers: { Accept: "application/graphql-response+json, application/json", ...authorization },
      enableIncrementalDelivery: false,
      subscriptionUrl: new URL(PATH, window.location.href.replace(/^http/, "ws")).href,
      wsConnectionParams: authorization,
      fetch: introspects ? undefined : (url, init) => this.#send(url, init, token),
    });
    const variables = JSON.stringify(params.variables ?? null).replaceAll(PLACEHOLDER, token || PLACEHOLDER);
    return send({ ...params, variables: JSON.parse(variables) }, options);
  };

  // Runs the flow that the user has chosen.
  async authorize(grant, scope) {
    if (grant !== "authorization_code") return this.#requestToken({ grant });
    try {
      const { url } = await this.#post("/ide/authorization", { scope });
      sessionStorage.setItem(SENT, "1");
      window.location.assign(url);
    } catch (error) {
      this.#set({ problem: error.message });
    }
  }

  #set(changes) {
    this.state = { ...this.state, ...changes };
    for (const listener of this.#listeners) listener();
  }

  async #begin() {
    const back = new URLSearchParams(window.location.search);
    // Codes do not stay in the address, the history or a copied link.
    if (back.has("state")) window.history.replaceState(null, "", window.location.pathname);
    try {
      await this.#refresh();
      if (back.has("error")) this.#set({ problem: back.get("error_description") || `Not authorized: ${back.get("error")}.` });
      else if (back.has("state")) await this.#requestToken({ code: back.get("code") ?? "", state: back.get("state") });
      else if (this.state.application?.needs_user) await this.#authorizeOnce();
      else if (this.state.application) await this.#requestToken({});
    } catch (error) {
      this.#set({ problem: `The sandbox does not respond: ${error.message}` });
    }
  }

  // Loads user, application and the number of used parts.
  async #refresh() {
    const { csrf, ...loaded } = await (await fetch("/ide/session")).json();
    this.#csrf = csrf;
    this.#set({ ...loaded, token: loaded.user && this.state.token });
  }

  async #currentToken() {
    await this.#begun;
    const { token } = this.state;
    if (token && token.expires_at - MARGIN <= Date.now() / 1000) await this.#requestToken({ renew: "1" });
    return this.state.token?.access_token ?? "";
  }

  async #requestToken(body) {
    try {
      this.#set({ token: await this.#post("/ide/token", body), problem: "" });
      sessionStorage.removeItem(SENT);
    } catch (error) {
      this.#set({ token: null, problem: error.message });
      if (error.code === "interaction_required") await this.#authorizeOnce();
    }
  }

  // A user who has not allowed it is not sent again.
  async #authorizeOnce() {
    if (sessionStorage.getItem(SENT)) this.#set({ problem: "The user has not authorized the application." });
    else await this.authorize("authorization_code", this.state.application.settings.scope);
  }

  async #send(url, init, token) {
    const started = performance.now();
    let response = await fetch(url, init);
    if (response.status === 401 && token) {
      // It may have been revoked; another one is requested, once.
      await this.#requestToken({ renew: "1" });
      const renewed = this.state.token?.access_token;
      if (renewed) response = await fetch(url, { ...init, headers: { ...init.headers, Authorization: `Bearer ${renewed}` } });
    }
    this.#set({ status: `HTTP ${response.status} · ${Math.round(performance.now() - started)} ms` });
    this.#refresh().catch(() => undefined);
    return response;
  }

  async #post(path, body) {
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": this.#csrf };
    const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
    const answer = await response.json();
    if (response.ok) return answer;
    const wait = response.headers.get("Retry-After");
    throw Object.assign(new Error(answer.error_description + (wait ? ` Try again in ${wait} s.` : "")), { code: answer.error });
  }
}

export const authorization = (session) => ({ title: "Authorization", icon: Icon, content: () => h(Panel, { session }) });

function Icon(props) {
  const path = h("path", { d: "M4 8h10v8H4zM6 8V5a3 3 0 0 1 6 0v3", stroke: "currentColor", strokeWidth: 1.5, fill: "none" });
  return h("svg", { viewBox: "0 0 18 18", height: "1em", ...props }, path);
}

function Panel({ session }) {
  const { user, organization, application, links, token, token_required: required, problem, status } = useSyncExternalStore(
    session.subscribe,
    session.snapshot,
  );
  return h(
    "section",
    { className: "ide-panel", "aria-label": "Authorization" },
    h("h2", null, "Authorization"),
    problem && h("p", { className: "ide-problem", role: "alert" }, problem),
    !user && h("p", null, required === false ? "Operations need no token." : "Sign in to run operations, or set Authorization under Headers."),
    !user && links.sign_in && h("p", null, h("a", { className: "ide-button", href: links.sign_in }, "Sign in")),
    user && h("p", null, "Signed in as ", h("a", { href: links.account, title: user.email }, user.name)),
    user && !application && h("p", null, `${organization} has no application; create one in the portal.`),
    application && h("p", { role: "status" }, token ? `Token for ${application.name} until ${time(token.expires_at)}` : "No token"),
    application && h("p", null, `${application.parts_used} of ${application.part_limit} parts used${application.period === "month" ? " this month" : ""}`),
    application && h(Flow, { key: application.application_id, session, application }),
    status && h("p", null, `Last response: ${status}`),
    user && h("p", null, h("a", { href: links.portal }, "Choose another application in the portal")),
    h("p", null, h("a", { href: `${PATH}?sdl`, download: "schema.graphql" }, "Download the schema")),
    h("p", null, h("a", { href: "/ide/assets/LICENSES.txt" }, "Licenses of GraphiQL and its libraries")),
  );
}

function time(seconds) {
  return new Date(seconds * 1000).toLocaleString();
}

function Flow({ session, application }) {
  const [grant, setGrant] = useState(application.grant);
  const [scope, setScope] = useState(application.settings.scope);
  const submit = (event) => {
    event.preventDefault();
    session.authorize(grant, scope);
  };
  const option = (name) =>
    h("label", { key: name }, h("input", { type: "radio", name: "grant", checked: grant === name, onChange: () => setGrant(name) }), GRANTS[name]);
  const setting = (name) => [h("dt", { key: name }, SETTINGS[name]), h("dd", { key: `${name}-value` }, application.settings[name])];
  return h(
    "form",
    { onSubmit: submit },
    h("fieldset", null, h("legend", null, "Grant"), application.grants.map(option)),
    grant === "authorization_code" && h("dl", null, Object.keys(SETTINGS).flatMap(setting)),
    grant === "authorization_code" && h("label", { htmlFor: "ide-scope" }, "Scopes"),
    grant === "authorization_code" && h("textarea", { id: "ide-scope", rows: 3, value: scope, onChange: (event) => setScope(event.target.value) }),
    h("button", { type: "submit", className: "ide-button" }, "Authorize"),
  );
}
