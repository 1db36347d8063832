// Who has signed in, with which application the IDE authorizes, and its token. One for the page; panels look at it
// through useSession. The server decides what a page may know.
import { useSyncExternalStore } from "./elements.js";

const SENT = "ide:sent";
// Seconds before its end at which a token is renewed.
const MARGIN = 60;

export class Session {
  #listeners = new Set();

  constructor() {
    this.state = { loading: true, user: null, application: null, links: {}, token: null, problem: "", last: "", refused: false };
    this.ready = this.#begin();
  }

  subscribe = (listener) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  snapshot = () => this.state;

  say(changes) {
    this.state = { ...this.state, ...changes };
    for (const listener of this.#listeners) listener();
  }

  // The token for the next request; "" where there is none.
  async bearer() {
    await this.ready;
    const { token } = this.state;
    if (token && token.expires_at - MARGIN <= Date.now() / 1000) await this.renew();
    return this.state.token?.access_token ?? "";
  }

  async renew() {
    if (this.state.user) await this.ask({ renew: "1" });
  }

  // Runs a flow that the user has chosen.
  async authorize(grant, scope) {
    if (grant !== "authorization_code") return this.ask({ grant });
    try {
      const { url } = await this.#post("/ide/authorization", { scope });
      sessionStorage.setItem(SENT, "1");
      window.location.assign(url);
    } catch (error) {
      this.say({ problem: error.message });
    }
  }

  // The parts used, and whether the user is still signed in.
  async refresh() {
    const response = await fetch("/ide/session", { headers: { Accept: "application/json" } });
    const { csrf, ...said } = await response.json();
    this.csrf = csrf;
    this.say({ ...said, token: said.user ? this.state.token : null });
  }

  async #begin() {
    const back = new URLSearchParams(window.location.search);
    // Codes do not stay in the address, the history or a copied link.
    if (back.has("state")) window.history.replaceState(null, "", window.location.pathname);
    try {
      await this.refresh();
      if (back.has("state") && back.has("error")) {
        this.say({ problem: back.get("error_description") || `Not authorized: ${back.get("error")}.` });
      } else if (this.state.user) {
        if (back.has("state")) await this.ask({ code: back.get("code") ?? "", state: back.get("state") });
        else if (this.state.application?.needs_user) await this.#send();
        else if (this.state.application) await this.ask({});
      }
    } catch (error) {
      this.say({ problem: `The sandbox does not respond: ${error.message}` });
    }
    this.say({ loading: false });
  }

  async ask(body) {
    try {
      this.say({ token: await this.#post("/ide/token", body), problem: "" });
      sessionStorage.removeItem(SENT);
    } catch (error) {
      this.say({ token: null, problem: error.code === "interaction_required" ? "" : error.message });
      if (error.code === "interaction_required") await this.#send();
    }
  }

  // Once by itself; a user who has not allowed it is not sent again.
  async #send() {
    if (sessionStorage.getItem(SENT)) this.say({ problem: "Not authorized yet: open Authorization." });
    else await this.authorize("authorization_code", this.state.application.settings.scope);
  }

  async #post(path, body) {
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": this.csrf ?? "" };
    const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
    const said = await response.json();
    if (response.ok) return said;
    const wait = response.headers.get("Retry-After");
    const error = new Error(said.error_description + (wait ? ` Try again in ${wait} s.` : ""));
    error.code = said.error;
    throw error;
  }
}

export const useSession = (session) => useSyncExternalStore(session.subscribe, session.snapshot);
