// How the editor's operations reach the query service: by POST, subscriptions over a WebSocket, both with the IDE's
// token unless the Headers editor has an Authorization of its own.
import { graphql } from "./elements.js";

const PATH = "/graphql";
// What stands for the token in variables: some subscriptions want it there.
const TOKEN = "{{token}}";
// An operation that needs a token and has none: the panel says what to do (hint.js).
class RefusedError extends Error {}

export function fetcher(session) {
  return async (params, options) => {
    const introspects = params.operationName === "IntrospectionQuery";
    const own = options?.headers ?? {};
    const brought = Object.keys(own).some((name) => name.toLowerCase() === "authorization");
    // The schema is everybody's: it is there before anybody has signed in.
    const token = introspects || brought ? "" : await session.bearer();
    if (!introspects) session.say({ refused: false });
    const socket = new URL(PATH, window.location.href.replace(/^http/, "ws")).href;
    const ask = window.GraphiQL.createFetcher({
      url: PATH,
      enableIncrementalDelivery: false,
      subscriptionUrl: socket,
      wsConnectionParams: token ? { Authorization: `Bearer ${token}` } : {},
      fetch: (url, init) => post(session, url, init, { token, introspects, brought }),
    });
    const [asked, parsed] = asDocument(filled(params, token), options);
    // A socket would be answered with the service's error and no status.
    if (!token && !brought && session.state.token_required && subscribes(asked, parsed)) return refused(session);
    return settled(ask(asked, parsed), session);
  };
}

function subscribes({ operationName }, options) {
  return graphql.getOperationAST(options?.documentAST, operationName)?.operation === "subscription";
}

async function settled(answer, session) {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof RefusedError) return refused(session);
    throw error;
  }
}

// No results: the response panel stays empty, and has its hint.
function refused(session) {
  session.say({ refused: true });
  return (async function* () {})();
}

// The editor looks through a document a moment after it was typed or opened: until then the operation that it names
// may be one of the document before.
function asDocument(params, options) {
  let documentAST;
  try {
    documentAST = graphql.parse(params.query);
  } catch {
    return [params, options]; // the service says what is wrong with it
  }
  const operations = documentAST.definitions.filter(({ kind }) => kind === graphql.Kind.OPERATION_DEFINITION);
  const names = operations.map(({ name }) => name?.value);
  const operationName = names.includes(params.operationName) || names.length !== 1 ? params.operationName : names[0];
  return [{ ...params, operationName }, { ...options, documentAST }];
}

async function post(session, url, init, { token, introspects, brought }) {
  const started = performance.now();
  let response = await send(url, init, token);
  if (response.status === 401 && token) {
    // It may have been ended before its time; another one is requested, once.
    await session.renew();
    const renewed = session.state.token?.access_token;
    if (renewed) response = await send(url, init, renewed);
  }
  if (response.status === 401 && !brought && !session.state.token) throw new RefusedError();
  if (!introspects) {
    session.say({ last: `HTTP ${response.status} · ${Math.round(performance.now() - started)} ms` });
    session.refresh().catch(() => undefined);
  }
  return response;
}

function send(url, init, token) {
  const headers = { Accept: "application/graphql-response+json, application/json", ...init.headers };
  return fetch(url, { ...init, headers: token ? { Authorization: `Bearer ${token}`, ...headers } : headers });
}

function filled(params, token) {
  const text = JSON.stringify(params.variables ?? null);
  if (!token || !text.includes(TOKEN)) return params;
  return { ...params, variables: JSON.parse(text.replaceAll(TOKEN, token)) };
}
