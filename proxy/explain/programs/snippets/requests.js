// Requests of a program in JavaScript: `main…` for each kind of v3 request, and what they use.

// Match several part numbers with one operation.
async function mainMatchBatch() {
  const data = await graphql(await accessToken(), QUERY, VARIABLES);
  const results = data.supMultiMatch.map((match, position) => ({
    items: match.parts.map((part) => MAP(part)),
    hits: match.hits,
    reference: REFERENCES[position],
    error: match.error,
  }));
  show({ results });
}

// Search one part number, and keep the parts that have exactly this number, as v3 did.
async function mainMatchNumber() {
  const token = await accessToken();
  const resultSet = (await graphql(token, QUERY, VARIABLES)).supSearchMpn;
  const results = resultSet.results ?? [];
  const parts = results
    .filter((each) => isNumber(each.part.mpn) || isNumber(each.akaMpn ?? ""))
    .map((each) => each.part);
  // Parts that only contain the number come last: where the page has one, it also has all that are equal to it.
  const shown = VARIABLES.start + parts.length;
  let hits = resultSet.hits;
  if (parts.length < results.length && (parts.length > 0 || VARIABLES.start === 0)) {
    hits = shown;
  } else if (shown < hits || (hits > 0 && parts.length === 0)) {
    // Costs nothing, because it returns no parts.
    hits = (await graphql(token, COUNT_QUERY, COUNT_VARIABLES)).supMultiMatch[0].hits;
  }
  const items = parts.map((part) => MAP(part));
  hits = Math.max(hits, items.length > 0 ? shown : 0);
  show({ results: [{ items, hits, reference: REFERENCE, error: null }] });
}

// Search parts by words.
async function mainMatchText() {
  const resultSet = (await graphql(await accessToken(), QUERY, VARIABLES)).supSearch;
  const items = (resultSet.results ?? []).map((each) => MAP(each.part));
  show({ results: [{ items, hits: resultSet.hits, reference: REFERENCE, error: null }] });
}

// Send each operation, and put the results in the order of the queries.
async function mainMatch() {
  const token = await accessToken();
  const results = QUERIES.map(({ reference, error }) => ({ items: [], hits: 0, reference, error }));
  for (const operation of OPERATIONS) {
    const data = await graphql(token, operation.query, operation.variables);
    matches(data).forEach((match, index) => {
      const position = operation.positions[index];
      Object.assign(results[position], pageOf(match, QUERIES[position]));
    });
  }
  show({ results });
}

// The result of each query: hits, error, and each part with the other number (akaMpn) that matched, if any.
function matches(data) {
  if (data.supMultiMatch) {
    return data.supMultiMatch.map((match) => ({ ...match, candidates: match.parts.map((part) => ({ part, akaMpn: null })) }));
  }
  const [resultSet] = Object.values(data);
  return [{ hits: resultSet.hits, error: null, candidates: resultSet.results ?? [] }];
}

// v3's result of one query: of the parts that Nexar candidates, those that v3 would have.
function pageOf(match, query) {
  let parts = match.candidates.filter((each) => isMatch(each.part, each.akaMpn, query)).map((each) => each.part);
  let hits = match.hits;
  if (query.is_filtered_here) {
    hits = parts.length;
    parts = parts.slice(query.start, query.start + query.limit);
  } else if (parts.length < match.candidates.length) {
    hits = query.start + parts.length;
  }
  return { items: parts.map((part) => MAP(part)), hits, error: match.error };
}

// Whether a part matches: what Nexar finds by words does.
function isMatchAny(part, aka, query) {
  return true;
}

// Whether a part matches the query's number, in which * stands for anything.
function isMatchPattern(part, aka, query) {
  const numbers = [plain(part.mpn), plain(aka ?? "")];
  return !query.pattern || numbers.some((number) => new RegExp(`^(?:${query.pattern})$`, "su").test(number));
}

// Whether a part has each number of the query to the letter, as exact_only demands.
function isMatchExactly(part, aka, query) {
  const numbers = [part.mpn, aka ?? ""];
  const skus = (part.sellers_includeBrokerstrue ?? []).flatMap((seller) => seller.offers.map((offer) => offer.sku));
  if (query.pattern) return numbers.some((number) => new RegExp(`^(?:${query.pattern})$`, "su").test(number));
  if (query.mpn_or_sku && ![...numbers, ...skus].includes(query.mpn_or_sku)) return false;
  return (!query.mpn || numbers.includes(query.mpn)) && (!query.sku || skus.includes(query.sku));
}

// Whether a part number is the one that is searched, whatever its punctuation and case.
function isNumber(number) {
  return plain(number) === PLAIN_NUMBER;
}

// A part number without punctuation, in capitals.
function plain(number) {
  return number.replace(/[^\p{L}\p{N}]/gu, "").toUpperCase();
}

// Get parts by uid; those that Nexar does not know are left out.
async function mainParts() {
  const data = await graphql(await accessToken(), QUERY, VARIABLES);
  const pairs = VARIABLES.ids.map((uid, position) => [uid, data.supParts[position]]);
  show(Object.fromEntries(pairs.filter(([, part]) => part !== null).map(([uid, part]) => [uid, MAP(part, uid)])));
}

// Get one part by its uid.
async function mainPart() {
  const [uid] = VARIABLES.ids;
  const [part] = (await graphql(await accessToken(), QUERY, VARIABLES)).supParts;
  if (part === null) fail(`there is no part with the uid ${uid}`);
  show(MAP(part, uid));
}

// Search parts.
async function mainSearch() {
  const resultSet = (await graphql(await accessToken(), QUERY, VARIABLES)).supSearch;
  const results = (resultSet.results ?? []).map((each) => ({ item: MAP(each.part), snippet: each.description }));
  show({ results, hits: resultSet.hits });
}

// Find parts by number, and keep those that have it to the letter: Nexar's search has no filter by number.
async function mainSearchNumbers() {
  const matches = (await graphql(await accessToken(), QUERY, VARIABLES)).supMultiMatch;
  const parts = matches.flatMap(({ parts }, position) =>
    parts.filter((part) => part.mpn === VARIABLES.queries[position].mpn));
  const further = matches.map((match) => Math.max(0, match.hits - match.parts.length));
  const hits = parts.length + further.reduce((sum, number) => sum + number, 0);
  const page = parts.slice(START, START + LIMIT);
  show({ results: page.map((part) => ({ item: MAP(part), snippet: part.shortDescription })), hits });
}

// Get objects by uid from Nexar's list of all of them, which is free.
async function mainList() {
  const records = (await graphql(await accessToken(), QUERY, {}))[LIST];
  const pairs = Object.entries(WANTED).map(([uid, key]) => [uid, records.find((record) => isWanted(record, key))]);
  show(Object.fromEntries(pairs.filter(([, record]) => record).map(([uid, record]) => [uid, MAP(record)])));
}

// Get one object by uid from Nexar's list of all of them, which is free.
async function mainListObject() {
  const records = (await graphql(await accessToken(), QUERY, {}))[LIST];
  const [[uid, key]] = Object.entries(WANTED);
  const record = records.find((each) => isWanted(each, key));
  if (!record) fail(`nothing has the uid ${uid}`);
  show(MAP(record));
}

// Whether a record is the one that v3's uid stands for: by Nexar's id or, where that is not known, by name.
function isWanted(record, key) {
  return [record.id, record.name.toLowerCase()].includes(key);
}

// Search Nexar's list of all objects, which is free, by words of their names.
async function mainListSearch() {
  let records = (await graphql(await accessToken(), QUERY, {}))[LIST];
  if (WORDS.length > 0) {
    const named = records.map((record) => ({ record, names: namesOf(record) }));
    named.sort((one, other) => (one.names[0] < other.names[0] ? -1 : Number(one.names[0] > other.names[0])));
    records = ranked(named.map(({ record, names }) => [rankOf(names), record]).filter(([rank]) => rank !== null));
  }
  const page = records.slice(START, START + LIMIT);
  show({ results: page.map((record) => ({ item: MAP(record), snippet: null })), hits: records.length });
}

// v3's order of objects: the whole name, its beginning, a word of it, another name; null if nothing matches.
function rankOf(names) {
  if (!allWordsBegin(names.join(" "))) return null;
  if (names[0] === SEARCHED) return 0;
  return names[0].startsWith(SEARCHED) ? 1 : allWordsBegin(names[0]) ? 2 : 3;
}

// Whether each of the searched words is the beginning of a word of a text.
function allWordsBegin(text) {
  const words = text.match(/[\p{L}\p{N}_]+/gu) ?? [];
  return WORDS.every((searched) => words.some((word) => word.startsWith(searched)));
}

// The names of a seller in small letters, v3's first.
function namesOfSeller(record) {
  return [sellerName(record.id, record.name), record.name, ...record.aliases].map((name) => name.toLowerCase());
}

// The names of an object in small letters.
function namesOfObject(record) {
  return [record.name, ...(record.aliases ?? [])].map((name) => name.toLowerCase());
}

// Print a response as JSON.
function show(response) {
  console.log(JSON.stringify(response, null, 2));
}

// Get an access token. It is valid for a day: a program that runs longer keeps it until then.
async function accessToken() {
  const { NEXAR_CLIENT_ID, NEXAR_CLIENT_SECRET } = process.env;
  if (!NEXAR_CLIENT_ID || !NEXAR_CLIENT_SECRET) {
    fail("set NEXAR_CLIENT_ID and NEXAR_CLIENT_SECRET to those of your Nexar application", 2);
  }
  const form = new URLSearchParams({
    grant_type: "client_credentials",
    client_id: NEXAR_CLIENT_ID,
    client_secret: NEXAR_CLIENT_SECRET,
    scope: SCOPE,
  });
  return (await post(TOKEN_URL, form, {})).access_token ?? fail(`${TOKEN_URL}: no access token`);
}

// Send one operation, and return its data. Any error ends the program: data beside it would lack something.
async function graphql(token, query, variables) {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` };
  const response = await post(GRAPHQL_URL, JSON.stringify({ query, variables }), headers);
  if (response.errors?.length) fail(`Nexar: ${response.errors.map((error) => error.message).join("; ")}`);
  return response.data;
}

// Send a POST request, and return the JSON of its response.
async function post(url, body, headers) {
  try {
    const response = await fetch(url, { method: "POST", body, headers, signal: AbortSignal.timeout(60_000) });
    const text = await response.text();
    if (!response.ok) fail(`${url}: HTTP ${response.status} ${text.slice(0, 500)}`);
    return JSON.parse(text);
  } catch (error) {
    fail(`${url}: ${error.cause?.message || error.cause?.code || error.message}`);
  }
}

// End the program with a message.
function fail(message, code = 1) {
  console.error(message);
  process.exit(code);
}
