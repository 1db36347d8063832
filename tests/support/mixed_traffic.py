"""Mixed traffic of many programs to a sandbox, and its exchanges as passive checks read them."""

import itertools
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp

import nexar_sandbox
from proxy.tools.conform import command as conform
from proxy.tools.conform.exchanges import UpstreamExchange

NUMBERS = (
    "SN74S74N",
    "MBR1020VL",
    "C0603C475K8PACTU",
    "APTF1616LSEEZGKQBKC",
    "FLUKE-424D",
    "206062-1",
    "ERJ-3EKF1001V",
)
MAKERS = {"C0603C475K8PACTU": "KEMET", "APTF1616LSEEZGKQBKC": "Kingbright", "SN74S74N": "Texas Instruments"}
UIDS = ("eddc25bd5de8321b", "103cdb613d20cffb", "ffffffffffffffff")
PART = """
    akaMpns category { ancestors { id name } id name } descriptions { creditString text } freeSampleUrl id
    images { creditString url55px } manufacturer { homepageUrl id name } mpn octopartUrl slug v3uid totalAvail
    medianPrice1000 { quantity currency } shortDescription
    sellers(includeBrokers: true) {
      company { id name } isAuthorized isBroker
      offers { clickUrl id inventoryLevel sku updated
        prices { currency price quantity convertedPrice convertedCurrency conversionRate } }
    }
    direct: sellers { isBroker isAuthorized }
    authorized: sellers(authorizedOnly: true) { isAuthorized }
    first: sellers(limit: 1) { isAuthorized }
    single: sellers(limit: 3) { offers(priceBreaks: [1]) { prices { quantity } } }
    specs { attribute { shortname id } value siValue valueType units displayValue }
    documentCollections { name documents { name url } }
"""
MATCH = f"""query ($queries: [SupPartMatchQuery!]!, $country: String! = "US", $currency: String! = "USD") {{
  supMultiMatch(queries: $queries, country: $country, currency: $currency) {{
    hits reference error parts {{ {PART} }} }} }}"""
OPTIONS = """query ($queries: [SupPartMatchQuery!]!, $options: SupPartMatchOptions) {
  supMultiMatch(queries: $queries, options: $options) { hits parts { id mpn totalAvail manufacturer { id } } } }"""
COUNT = "query ($queries: [SupPartMatchQuery!]!) { supMultiMatch(queries: $queries) { hits } }"
SEARCH_FIELDS = """hits results { part { id mpn totalAvail manufacturer { id name } category { id ancestors { id } }
  sellers { company { name } } } }"""
SEARCH = f"""query ($q: String, $filters: Map, $stock: Boolean, $start: Int, $limit: Int, $sort: String,
  $dir: SupSortDirection, $country: String! = "US", $currency: String! = "USD") {{
  supSearch(q: $q, filters: $filters, inStockOnly: $stock, start: $start, limit: $limit, sort: $sort, sortDir: $dir,
  country: $country, currency: $currency) {{ {SEARCH_FIELDS} }} }}"""
MPN_SEARCH = SEARCH.replace("supSearch(", "supSearchMpn(")
AGGREGATIONS = """query ($q: String) { supSearch(q: $q, limit: 0) { hits results { part { id } }
  manufacturerAgg(size: 1000) { count } distributorAgg(size: 1000) { count }
  specAggs(attributeNames: ["maxfrequency"], size: 1000) { attribute { shortname } siMin buckets { floatValue } }
  suggested: specAggs(attributeNames: ["maxfrequency"], attributeSelection: WITH_SUGGESTED) {
  attribute { shortname } } } }"""
ALIASES = """{ one: supSearchMpn(q: "MBR1020VL", limit: 1) { hits results { part { mpn } } }
  other: supSearch(q: "diode", limit: 0) { hits results { part { id } } } }"""
PARTS = f"""query ($ids: [String!]!, $currency: String!) {{
  supParts(ids: $ids, country: "US", currency: $currency) {{ {PART} }} }}"""
LISTS = (
    "{ supSellers { id name } }",
    "{ supAttributes { id shortname name } }",
    '{ supCategories(ids: ["4161"]) { id parentId ancestors { id } children { id parentId children { id } } } }',
)
SEARCHES: tuple[dict[str, Any], ...] = (
    {"q": "SN74S74N", "limit": 2},
    {"q": "diode", "limit": 5, "sort": "manufacturer.displayname", "dir": "desc"},
    {"q": "diode", "limit": 5, "sort": "manufacturer.displayname", "dir": "asc"},
    {"q": "diode", "limit": 5, "sort": "median_price_1000", "dir": "asc"},
    {"q": "diode", "limit": 1, "start": 1, "sort": "mpn", "dir": "asc"},
    {"q": "diode", "limit": 1, "start": 0, "sort": "mpn", "dir": "asc"},
    {"q": "diode", "limit": 2, "country": "JP", "currency": "JPY"},
    {"q": "diode", "limit": 2},
    {"q": "diode", "limit": 20, "filters": {"manufacturer_id": ["278"]}},
    {"q": "diode", "limit": 20, "filters": {"manufacturer_id": ["onsemi"]}},
    {"q": "diode", "limit": 20, "filters": {"manufacturer_id": ["278", "30"]}},
    {"q": "diode", "limit": 20, "filters": {"distributor_id": ["Digi-Key"]}},
    {"q": "diode", "limit": 20, "filters": {"manufacturer_id": ["278"], "distributor_id": ["3261"]}},
    {"q": "diode", "limit": 20, "filters": {"category_id": ["4161"]}},
    {"q": "SN74S74N", "limit": 20, "stock": True},
    {"filters": {"manufacturer_id": ["370"]}, "limit": 0},
    {"q": "", "filters": {"manufacturer_id": ["370"]}, "limit": 0},
    {"q": "no-such-part-number-0", "start": 1000, "limit": 100},
    {"q": "diode", "start": 1001, "limit": 101},
    *(
        {"q": "capacitor", "limit": 0, "filters": {"capacitance": [value]}}
        for value in ("(0.0000001__0.0000001)", "(9e-08__1.1e-07)", "(0.00000009__)", "0.0000001")
    ),
    {"q": "capacitor", "limit": 0, "filters": {"case_package": ["0603"]}},
)
FIXED = {"list": LISTS, "aliases": (ALIASES,)}
KINDS = ("bom", "pages", "options", "search", "number", "aggregations", "parts", "list", "aliases", "error", "token")

FAULTS = (
    "reset share=0.03",
    "5xx status=503 share=0.04",
    "5xx status=500 body=json share=0.04",
    "429 share=0.04",
    "cut share=0.05",
    "malformed share=0.03",
    "malformed body=html share=0.03",
    "401 share=0.03",
    "expired share=0.02",
)


@asynccontextmanager
async def sandbox(
    catalog: nexar_sandbox.Catalog,
    key: nexar_sandbox.SigningKey,
    *,
    seed: int = 1,
    faults: tuple[str, ...] = (),
    deviations: tuple[str, ...] = (),
) -> AsyncIterator[nexar_sandbox.Sandbox]:
    """Serve a sandbox with faults and deviations, and with parts for any number of requests."""
    settings = conform.conformance_sandbox(nexar_sandbox.deviate(deviations))
    # Its 1,000 parts end after a few responses; from then on there would be errors only.
    rich = replace(settings.applications[0], plan=None, part_limit=10**9)
    settings = replace(settings, applications=(rich, *settings.applications[1:]))
    async with nexar_sandbox.serve(settings, rng=random.Random(seed), catalog=catalog, key=key) as served:
        served.faults.replace(tuple(fault for text in faults for fault in nexar_sandbox.parse_faults(text)))
        yield served


class Traffic:
    """Requests in random order; `exchanges` sends so many of them."""

    def __init__(self, sandbox: nexar_sandbox.Sandbox, seed: int, kinds: tuple[str, ...] = KINDS) -> None:
        self._kinds, self._searches = kinds, itertools.cycle(SEARCHES)
        self._sandbox, self._random, self._token = sandbox, random.Random(seed), ""
        self._poor_token = ""  # of an application without parts

    async def exchanges(self, count: int) -> AsyncIterator[UpstreamExchange]:
        """Send requests, and yield those that got a response."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(5)) as session:
            await self._request_token(session)
            poor = next((each for each in self._sandbox.applications.all if each.part_limit == 0), None)
            if poor is not None:
                form = _form(poor.client_id, poor.client_secret)
                async with session.post(self._sandbox.token_url, data=form) as response:
                    exchange = await self._read(response)
                    if isinstance(exchange.body, dict):
                        self._poor_token = exchange.body.get("access_token", "")
            for index in range(count):
                try:
                    yield await self._exchange(session, self._kinds[index % len(self._kinds)])
                except (aiohttp.ClientError, TimeoutError, UnicodeDecodeError):
                    continue

    async def _exchange(self, session: aiohttp.ClientSession, kind: str) -> UpstreamExchange:
        if kind == "token":
            return await self._request_token(session)
        query, variables = self._request(kind)
        token = "no.such.token" if kind == "error" and self._random.random() < 0.3 else self._token
        if kind == "aliases" and self._poor_token and self._random.random() < 0.3:
            token = self._poor_token
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        operation = None
        if kind == "aliases" and self._random.random() < 0.5:
            query, operation = f"query A {{ __typename }} query B {query}", "B"
        payload = {"query": query, "variables": variables, "operationName": operation}
        async with session.post(self._sandbox.graphql_url, json=payload, headers=headers) as response:
            return await self._read(response, query=query, variables=variables, operation=operation, authorized=True)

    async def _request_token(self, session: aiohttp.ClientSession) -> UpstreamExchange:
        secret = self._sandbox.client_secret if not self._token or self._random.random() < 0.7 else "wrong"
        async with session.post(self._sandbox.token_url, data=_form(self._sandbox.client_id, secret)) as response:
            exchange = await self._read(response)
        if isinstance(exchange.body, dict):
            self._token = exchange.body.get("access_token") or self._token
        return exchange

    async def _read(self, response: aiohttp.ClientResponse, **request: Any) -> UpstreamExchange:
        try:
            body = await response.json(content_type=None)
        except ValueError:
            body = None
        headers = {name.lower(): value for name, value in response.headers.items()}
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return UpstreamExchange(body, status=response.status, headers=headers, at=at, host="127.0.0.1", **request)

    def _request(self, kind: str) -> tuple[str, dict[str, Any]]:
        pick = self._random.choice
        if kind in FIXED:
            return pick(FIXED[kind]), {}
        match kind:
            case "bom":
                queries = [self._query(index) for index in range(self._random.randint(2, 8))]
                queries += queries[:1]
                country, currency = pick((("US", "USD"), ("JP", "JPY"), ("DE", "EUR")))
                return MATCH, {"queries": queries, "country": country, "currency": currency}
            case "pages":
                if self._random.random() < 0.2:
                    return COUNT, {"queries": [{"mpn": f"no-part-{index}", "limit": 1} for index in range(100)]}
                query = {"mpn": "MBR1020VL", "start": pick((0, 1)), "limit": pick((0, 1))}
                return MATCH, {"queries": [query, {"limit": 1}]}
            case "options":
                options = pick(({"filters": {"manufacturer_id": ["370"]}}, {"requireStockAvailable": True}))
                queries = [{"mpn": number, "limit": 3} for number in NUMBERS[:3]]
                queries += [{"mpn": "SN74S74N", "manufacturer": "AMD", "limit": 3}]
                return OPTIONS, {"queries": queries, "options": options}
            case "search":
                return SEARCH, next(self._searches)
            case "number":
                return MPN_SEARCH, {"q": pick(("MBR1020V", "MBR1020VL", "SN74S74N")), "start": pick((0, 1)), "limit": 3}
            case "aggregations":
                return AGGREGATIONS, {"q": pick(("SN74S74N", "capacitor", "MBR1020VL"))}
            case "parts":
                ids = pick(
                    ([UIDS[0], "0", UIDS[1], UIDS[2], "9145152"], [UIDS[1]], [UIDS[0], "71048703"], ["55403646"])
                )
                return PARTS, {"ids": ids, "currency": pick(("USD", "JPY"))}
            case _:
                return pick((MPN_SEARCH, "{ desWorkspaceInfos { name } }")), {"q": "diode", "start": -1, "limit": 101}

    def _query(self, index: int) -> dict[str, Any]:
        number = self._random.choice((*NUMBERS, f"no-such-part-number-{index}"))
        query = {"limit": 3, "reference": f"line {index}"}
        if number in MAKERS and self._random.random() < 0.4:
            maker = MAKERS[number]
            query["manufacturer"] = self._random.choice((maker, maker.lower()))
        if self._random.random() < 0.2:
            return {**query, "mpnOrSku": self._random.choice((number, "754-1972-1-ND"))}
        if self._random.random() < 0.1:
            return {**query, "sku": "754-1972-1-ND"}
        written = (number, number.lower(), number.replace("-", ""), f"{number[:3]}.{number[3:]}")
        return {**query, "mpn": self._random.choice(written)}


def _form(client_id: str, secret: str) -> dict[str, str]:
    return {
        "grant_type": "client_credentials",
        "client_id": client_id,
        "client_secret": secret,
        "scope": "supply.domain",
    }
