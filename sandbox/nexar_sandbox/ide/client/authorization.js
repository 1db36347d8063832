// GraphiQL plug-in for access tokens: sends a token of the organization's application with every operation, and shows what
// operations cost. Secrets do not reach the page.
const { createElement: h, useSyncExternalStore } = window.React;

const PATH = "/graphql";
// Replaced by the token in variables: some subscriptions want it there.
const PLACEHOLDER = "{{token}}";
// Seconds before its expiry at which a token is renewed.
const MARGIN = 60;

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

  #set(changes) {
    this.state = { ...this.state, ...changes };
    for (const listener of this.#listeners) listener();
  }

  async #begin() {
    try {
      await this.#refresh();
      if (this.state.application) await this.#requestToken();
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
    if (token && token.expires_at - MARGIN <= Date.now() / 1000) await this.#requestToken();
    return this.state.token?.access_token ?? "";
  }

  async #requestToken() {
    const response = await fetch("/ide/token", { method: "POST", headers: { "X-CSRF-Token": this.#csrf } });
    const answer = await response.json();
    const token = { ...answer, expires_at: Date.now() / 1000 + answer.expires_in };
    this.#set(response.ok ? { token, problem: "" } : { token: null, problem: answer.error_description });
  }

  async #send(url, init, token) {
    const started = performance.now();
    let response = await fetch(url, init);
    if (response.status === 401 && token) {
      // It may have been revoked; another one is requested, once.
      await this.#requestToken();
      const renewed = this.state.token?.access_token;
      if (renewed) response = await fetch(url, { ...init, headers: { ...init.headers, Authorization: `Bearer ${renewed}` } });
    }
    const status = `HTTP ${response.status} · ${Math.round(performance.now() - started)} ms`;
    const before = this.state.application?.parts_used;
    this.#set({ status });
    this.#refresh()
      .then(() => before !== undefined && this.#set({ status: `${status} · ${this.state.application.parts_used - before} parts` }))
      .catch(() => undefined);
    return response;
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
    status && h("p", null, `Last response: ${status}`),
    user && h("p", null, h("a", { href: links.portal }, "Choose another application in the portal")),
    h("p", null, h("a", { href: `${PATH}?sdl`, download: "schema.graphql" }, "Download the schema")),
    h("p", null, h("a", { href: "/ide/assets/LICENSES.txt" }, "Licenses of GraphiQL and its libraries")),
  );
}

function time(seconds) {
  return new Date(seconds * 1000).toLocaleString();
}
