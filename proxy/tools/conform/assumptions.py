"""Assumptions about the Nexar services that change a value or a bill, as functions of the answers to probes.

`Assumed` has the evidence (section and mark of contract/graphql.md; OWN: no public source), what depends on it, and the
probe, which says what it costs. Most assumptions about hits are declared by their `counts`. Each of the others is a
function: its docstring is the question, and it returns True where the assumption holds, else what was observed.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from proxy.tools.conform.run import NO_PARTS, NO_SPECS, Answer, Assumption, NotTested, Probe

Check = Callable[[Answer], Any]

ALL: list[Assumption] = []
NEEDED, SOME = "needed", "some"  # at least one hit: else the assumption is not tested, or contradicted


@dataclass(frozen=True)
class Assumed:
    """Declares assumptions, with their evidence, what depends on them, and the probe that tests them."""

    evidence: str
    matters: str
    probe: Probe

    def __call__(self, check: Check) -> Check:
        """Declare a function as the check of an assumption."""
        name, question = check.__name__.replace("_", "-"), check.__doc__ or ""
        ALL.append(Assumption(name, question, self.evidence, self.matters, self.probe, check))
        return check

    def counts(self, name: str, question: str, /, **expected: int | str) -> None:
        """Declare what is assumed of hits: by alias their number, an alias with as many, SOME, or NEEDED for a test."""
        check = partial(_check_counts, expected)
        ALL.append(Assumption(name, question, self.evidence, self.matters, self.probe, check))


def _check_counts(expected: Mapping[str, int | str], answer: Answer) -> Any:
    found = hits(answer, *(alias for alias, count in expected.items() if count == NEEDED))
    given = {alias: count for alias, count in expected.items() if count not in (NEEDED, SOME)}
    holds = all(found[alias] == found.get(str(count), count) for alias, count in given.items())
    return (holds and all(found[alias] > 0 for alias in expected.keys() - given)) or found


def matches(**queries: Mapping[str, Any]) -> Probe:
    """Return a probe that counts the hits of queries to supMultiMatch, by alias. `limit: 0` returns no part."""
    variables = {alias: [{**query, "limit": 0}] for alias, query in queries.items()}
    declared = ", ".join(f"${alias}: [SupPartMatchQuery!]!" for alias in queries)
    fields = " ".join(f"{alias}: supMultiMatch(queries: ${alias}) {{ hits }}" for alias in queries)
    return Probe(f"query ({declared}) {{ {fields} }}", variables)


def searches(**arguments: Mapping[str, Any]) -> Probe:
    """Return a probe that counts the hits of searches, by alias. `limit: 0` returns no part."""
    variables, fields = {}, []
    for alias, given in arguments.items():
        words = ", ".join(f"{key}: {json.dumps(value)}" for key, value in given.items() if key != "filters")
        if "filters" in given:
            variables[alias] = given["filters"]
            words += f", filters: ${alias}"
        fields.append(f"{alias}: supSearch({words}, limit: 0) {{ hits }}")
    declared = ", ".join(f"${alias}: Map" for alias in variables)
    return Probe(f"query {declared and f'({declared})'} {{ {' '.join(fields)} }}", variables)


def hits(answer: Answer, *needed: str) -> dict[str, int]:
    """Return the hits by alias. Raises NotTested where the service has none for those that are needed."""
    found = {alias: (root[0] if isinstance(root, list) else root)["hits"] for alias, root in answer.data.items()}
    if missing := [alias for alias in needed if not found[alias]]:
        raise NotTested(f"the service finds nothing for {', '.join(missing)}")
    return found


def existing(found: list[Any]) -> list[Any]:
    """Return what there is of hits or parts. Raises NotTested if there is nothing: the service has other parts."""
    if not any(found):
        raise NotTested("the service does not have the parts that are asked for")
    return [each for each in found if each]


NUMBER, SHARED = {"mpn": "SN74S74N"}, {"mpn": "MBR1020VL"}
TEXAS = "Texas Instruments"
NUMBERS = matches(
    plain=NUMBER,
    punctuated={"mpn": "SN-74S.74 N"},
    lower={"mpn": "sn74s74n"},
    piece={"mpn": "MBR1020V"},
    shared=SHARED,
    one={**SHARED, "manufacturer": "onsemi"},
    same={**NUMBER, "manufacturer": TEXAS},
    case={**NUMBER, "manufacturer": "TEXAS instruments"},
    unknown={**NUMBER, "manufacturer": "Texas Instrumentos"},
    alias={"mpn": "BU2032SM-BT-GTR", "manufacturer": "MPD"},
)
SKU = {"sku": "754-1972-1-ND"}
ORDER_CODES = matches(
    sku=SKU,
    seller={**SKU, "seller": "Digi-Key"},
    other={**SKU, "seller": "Mouser"},
    either_sku={"mpnOrSku": SKU["sku"]},
    either_mpn={"mpnOrSku": NUMBER["mpn"]},
)


Assumed("§2.3 DOC, INF", "v3 matched part numbers so; clients' numbers are passed on as they are", NUMBERS).counts(
    "match-spelling",
    "A match ignores case, punctuation and blanks in part numbers.",
    plain=NEEDED,
    lower="plain",
    punctuated="plain",
)
Assumed("§2.3 INF", "no part is paid for and left out", NUMBERS).counts(
    "match-whole-number", "A match finds whole part numbers only, not longer ones.", shared=NEEDED, piece=0
)


@Assumed(
    "§1.3, §2.3 REC",
    "v3 returned the parts of all makers; the answer without a maker serves those with one where it has a single hit",
    NUMBERS,
)
def match_makers(answer: Answer) -> Any:
    """A match finds the parts of all makers of a number; a maker adds no part, and takes those of others away."""
    found = hits(answer, "shared", "plain")
    return (0 < found["one"] < found["shared"] and 0 < found["same"] <= found["plain"]) or found


Assumed("§2.3 INF", "brands are passed on as clients write them", NUMBERS).counts(
    "maker-spelling",
    "The name of a maker may be in another case, or a known short form such as MPD.",
    same=NEEDED,
    case="same",
    alias=SOME,
)
Assumed("§2.3 REC", "a filter must not be ignored", NUMBERS).counts(
    "unknown-maker", "A match with an unknown maker finds nothing.", plain=NEEDED, unknown=0
)
Assumed("§2.3 SDL", "v3's sku and seller of a query", ORDER_CODES).counts(
    "order-code-of-seller",
    "A match finds parts by an order code, and beside a seller by that seller's only.",
    sku=NEEDED,
    seller=SOME,
    other=0,
)
Assumed("§2.3 SDL", "v3's mpn_or_sku of a query", ORDER_CODES).counts(
    "mpn-or-sku", "MpnOrSku finds part numbers and order codes.", sku=NEEDED, either_mpn=SOME, either_sku="sku"
)
MATCH = "query ($queries: [SupPartMatchQuery!]!) { supMultiMatch(queries: $queries) { hits error parts { id mpn } } }"
MATCH_HITS = "query ($queries: [SupPartMatchQuery!]!) { supMultiMatch(queries: $queries) { hits error } }"
NOBODY = {"mpn": "no-such-part-number-0", "limit": 1}
SEVERAL = Probe(MATCH_HITS, {"queries": [{**each, "limit": 0} for each in (NOBODY, SHARED, {}, SHARED, NUMBER)]})
HUNDRED = Probe(MATCH_HITS, {"queries": [{"mpn": f"no-such-part-{n}", "limit": 1} for n in range(100)]})
OPTIONS = Probe(
    """query ($filters: Map, $gone: [SupPartMatchQuery!]!) {
        all: supMultiMatch(queries: [{mpn: "MBR1020VL", limit: 0}]) { hits }
        filtered: supMultiMatch(queries: [{mpn: "MBR1020VL", limit: 0}], options: {filters: $filters}) { hits }
        abroad: supMultiMatch(queries: [{mpn: "MBR1020VL", limit: 0}], country: "JP", currency: "JPY") { hits }
        gone: supMultiMatch(queries: $gone) { hits }
        stocked: supMultiMatch(queries: $gone, options: {requireStockAvailable: true}) { hits }
    }""",
    {"filters": {"manufacturer_id": ["370"]}, "gone": [{**NUMBER, "manufacturer": "AMD", "limit": 0}]},
)


@Assumed("§2.3 REC", "queries of several clients share a request, without references", SEVERAL)
def match_order(answer: Answer) -> Any:
    """SupMultiMatch has one result for each query, in their order, also of equal ones."""
    found = [each["hits"] > 0 for each in answer.data["supMultiMatch"]]
    return (bool(existing(found)) and found == [False, True, False, True, True]) or found


@Assumed("§1.2, §11 no. 4 OWN", "the error of a query becomes that of its v3 result", SEVERAL)
def match_error(answer: Answer) -> Any:
    """A query that names nothing has an error in the words of v3, and leaves the others alone."""
    found = [each["error"] for each in answer.data["supMultiMatch"]]
    return found == [None, None, "Missing search filters", None, None] or found


@Assumed(
    "§2.3 REC", "an unknown part number is a v3 result without items", Probe(MATCH, {"queries": [NOBODY]}, parts=1)
)
def match_without_hits(answer: Answer) -> Any:
    """A query that matches nothing has no hits, no parts and no error."""
    found = answer.data["supMultiMatch"]
    return found == [{"hits": 0, "error": None, "parts": []}] or found


@Assumed("§2.1 DOC", "queries of several clients share a request", HUNDRED)
def hundred_queries(answer: Answer) -> Any:
    """SupMultiMatch takes 100 queries of one part each."""
    return len(answer.data["supMultiMatch"]) == 100 or len(answer.data["supMultiMatch"])


Assumed("§2.3 DOC", "searches filtered by part number become matches with options", OPTIONS).counts(
    "match-filters",
    "Filters and stock among the options of supMultiMatch leave out parts.",
    all=NEEDED,
    gone=NEEDED,
    filtered=0,
    stocked=0,
)
Assumed("§2.1 DOC", "the country of an application concerns offers only", OPTIONS).counts(
    "match-abroad", "Country and currency do not change which parts match.", all=NEEDED, abroad="all"
)
PAGES = Probe(
    """{
        first: supMultiMatch(queries: [{mpn: "MBR1020VL", start: 0, limit: 1}]) { hits parts { id mpn akaMpns } }
        second: supMultiMatch(queries: [{mpn: "MBR1020VL", start: 1, limit: 1}]) { hits parts { id mpn akaMpns } }
    }""",
    parts=2,
)


@Assumed("§2.3 REC", "v3's start, limit and hits of a query", PAGES)
def match_pages(answer: Answer) -> Any:
    """Start and limit of a query select parts of its result, and hits counts all."""
    first, second = answer.data["first"][0], answer.data["second"][0]
    ids = [part["id"] for part in existing([*first["parts"], *second["parts"]])]
    return (first["hits"] == second["hits"] and len(set(ids)) == 2) or [first["hits"], second["hits"], len(ids)]


@Assumed("§2.3 REC", "parts of other numbers are left out, and paid for", PAGES)
def match_numbers(answer: Answer) -> Any:
    """Parts that match have the number that was asked for, the first as it is spelled, or as an alternate one."""
    parts = existing([part for root in answer.data.values() for part in root[0]["parts"]])
    others = [part["mpn"] for part in parts if "MBR1020VL" not in (part["mpn"], *part["akaMpns"])]
    return (parts[0]["mpn"] == "MBR1020VL" and not others) or [part["mpn"] for part in parts]


# What is billed.
ZERO = Probe(MATCH, {"queries": [{"mpn": "APTF1616LSEEZGKQBKC", "limit": 0}]}, parts=1)
RESULTS = Probe(
    """{
        zero: supSearch(q: "SN74S74N", limit: 0) { hits results { part { mpn } } }
        none: supSearch(q: "no-such-part-number-0", limit: 1) { hits results { part { mpn } } }
    }""",
    parts=1,
)
BAD_CURRENCY = Probe(
    '{ supSearch(q: "SN74S74N", limit: 1, currency: "XXX") { hits results { part { mpn } } } }', parts=1
)
BEST = Probe(
    """{
        plain: supMultiMatch(queries: [{mpn: "SN74S74N", limit: 0}]) { hits }
        best: supSearchMpn(q: "SN74S74N", limit: 1) { results { part { mpn } } }
    }""",
    parts=1,
)


@Assumed("§11 no. 4 INF", "hits and facets are counted for no part", ZERO)
def limit_zero_is_free(answer: Answer) -> Any:
    """A query with limit 0 has its hits and no parts, and is not billed."""
    found = answer.data["supMultiMatch"][0]
    return (bool(existing([found["hits"]])) and not found["parts"] and not answer.billed) or [found, answer.billed]


@Assumed("§1.2 CLI", "a client of `/graphql` does not see from null that there are no hits", RESULTS)
def results_are_null_without_hits(answer: Answer) -> Any:
    """The results of a search without hits are null, those of one with limit 0 an empty list."""
    zero, none = answer.data["zero"], answer.data["none"]
    return (bool(existing([zero["hits"]])) and (zero["results"], none["results"]) == ([], None)) or answer.data


@Assumed("§6 INF", "its parts count as uncertain, in case that it is", BAD_CURRENCY)
def refusal_is_free(answer: Answer) -> Any:
    """A request that is refused, here for its currency, returns no part and is not billed."""
    is_refused = bool(answer.errors and not answer.body.get("data"))
    return (is_refused and not answer.billed) or answer.billed or answer.body


@Assumed("§2.3 INF", "the first part with another number ends the matches of a query", BEST)
def number_search_order(answer: Answer) -> Any:
    """SupSearchMpn lists numbers that equal the query first."""
    existing([answer.data["plain"][0]["hits"]])
    mpn = answer.data["best"]["results"][0]["part"]["mpn"]
    return mpn == "SN74S74N" or mpn


LIMITED = Probe('{ supSearchMpn(q: "SN74S74N", limit: 1) { results { part { id } } } }', parts=1, account=NO_PARTS)
FEATURE = Probe(
    '{ supSearchMpn(q: "SN74S74N", limit: 0) { hits specAggs(attributeNames: ["case_package"]) { valueType } } }',
    account=NO_SPECS,
)
NO_TOKEN = Probe('{ supSearchMpn(q: "SN74S74N", limit: 0) { hits } }', token="no.such.token")  # noqa: S106 - it is none


@Assumed("§3.2 DOC", "an exhausted quota is recognized by it, and nothing is sent until it ends", LIMITED)
def part_limit_message(answer: Answer) -> Any:
    """The message of an exhausted part limit begins as documented and has the limit."""
    start = "You have exceeded your part limit of "
    return (answer.messages[0].startswith(start) and answer.messages[0][len(start)].isdecimal()) or answer.messages


@Assumed("§3.2 INF", "the fields of a feature that a plan lacks are asked for once", FEATURE)
def missing_feature_path(answer: Answer) -> Any:
    """The error for a feature that the plan lacks has the path of a field of it."""
    paths = [error.get("path") for error in answer.errors]
    return any(path and path[-1] == "specAggs" for path in paths) or paths


@Assumed("§3.2 DOC", "a 401 makes v3bridge request a new token", NO_TOKEN)
def invalid_token_status(answer: Answer) -> Any:
    """A request with an invalid token gets the status 401."""
    return answer.status == 401 or answer.status


# Searches, filters and counts.
TEXTS = searches(word={"q": "MBR1020VL"}, nonsense={"q": "MBR1020VL xqzvjkw"})
FILTERS = searches(
    id={"q": "diode", "filters": {"manufacturer_id": ["278"]}},
    name={"q": "diode", "filters": {"manufacturer_id": ["onsemi"]}},
    seller={"q": "diode", "filters": {"distributor_id": ["459"]}},
    seller_name={"q": "diode", "filters": {"distributor_id": ["Digi-Key"]}},
    other={"q": "diode", "filters": {"manufacturer_id": ["30"]}},
    two={"q": "diode", "filters": {"manufacturer_id": ["278", "30"]}},
    both={"q": "diode", "filters": {"manufacturer_id": ["278"], "distributor_id": ["459"]}},
    unknown={"q": "diode", "filters": {"manufacturer_id": ["No Such Manufacturer 0"]}},
    root={"q": "diode", "filters": {"category_id": ["4161"]}},
)
VALUES = searches(
    closed={"q": "capacitor", "filters": {"capacitance": ["(0.0000001__0.0000001)"]}},
    exponent={"q": "capacitor", "filters": {"capacitance": ["(9e-08__1.1e-07)"]}},
    low={"q": "capacitor", "filters": {"capacitance": ["(0.00000009__)"]}},
    wide={"q": "capacitor", "filters": {"capacitance": ["(0.00000009__0.00000011)"]}},
    displayed={"q": "capacitor", "filters": {"capacitance": ["100 nF"]}},
)
UNKNOWN_FILTER = searches(unknown={"q": "diode", "filters": {"no_such_attribute_0": ["1"]}})
AGGREGATIONS = Probe(
    """query ($seller: Map) {
        narrow: supSearch(q: "SN74S74N", limit: 0) {
          hits manufacturerAgg(size: 1000) { count } inStockAgg { isInStock count }
        }
        stocked: supSearch(q: "SN74S74N", limit: 0, inStockOnly: true) { hits }
        broad: supSearch(q: "capacitor", limit: 0) { hits distributorAgg(size: 1000) { company { id } count } }
        seller: supSearch(q: "capacitor", limit: 0, filters: $seller) { hits }
    }""",
    {"seller": {"distributor_id": ["459"]}},
)


Assumed("§1.1 INF", "v3's q", TEXTS).counts(
    "search-every-word", "SupSearch finds parts that have every word of the query.", word=NEEDED, nonsense=0
)
Assumed(
    "§2.4 DOC, INF", "brands and sellers of v3 queries are sent as filters, which must not be ignored", FILTERS
).counts(
    "filter-by-name",
    "Filters by a maker or a seller take its name in place of its id, and find nothing by an unknown one.",
    id=NEEDED,
    seller=NEEDED,
    name="id",
    seller_name="seller",
    unknown=0,
)


@Assumed("§2.4 INF", "all v3 filters must hold, and several values of one are alternatives", FILTERS)
def filter_values(answer: Answer) -> Any:
    """One of the values of a filter is enough, and all filters must hold."""
    found = hits(answer, "id", "other")
    return (found["two"] == found["id"] + found["other"] and found["both"] <= found["id"]) or found


Assumed("§2.4 INF", "v3's category_uids were those of all ancestors", FILTERS).counts(
    "category-filter", "A filter by a category includes the categories below it.", id=NEEDED, root=SOME
)


@Assumed("§2.4 INF", "v3's ranges of specs", VALUES)
def range_ends(answer: Answer) -> Any:
    """The ends of a range belong to it, are in SI base units, may have exponents, and may be absent."""
    found = hits(answer, "wide")
    return (found["closed"] > 0 and found["exponent"] == found["wide"] <= found["low"]) or found


Assumed("§2.4 INF", "values of v3 filters are sent as they are", VALUES).counts(
    "value-filter-displayed",
    "A filter by an attribute takes a number as it is displayed, such as 100 nF.",
    wide=NEEDED,
    displayed=SOME,
)


@Assumed("§2.4 OWN", "a filter must not be ignored", UNKNOWN_FILTER)
def unknown_filter(answer: Answer) -> Any:
    """An unknown key of the filters is refused."""
    return bool(answer.errors and not answer.body.get("data")) or answer.body


@Assumed("§2.4 DOC", "v3's filter and facet of avg_avail", AGGREGATIONS)
def in_stock(answer: Answer) -> Any:
    """InStockOnly leaves what inStockAgg counts as in stock."""
    narrow, stocked = answer.data["narrow"], answer.data["stocked"]["hits"]
    counts = {each["isInStock"]: each["count"] for each in narrow["inStockAgg"]}
    (hits,) = existing([narrow["hits"]])
    return (stocked == counts[True] and sum(counts.values()) == hits) or [stocked, narrow]


@Assumed("§1.2 INF", "v3's facets", AGGREGATIONS)
def maker_counts(answer: Answer) -> Any:
    """ManufacturerAgg counts each hit once."""
    narrow = answer.data["narrow"]
    (hits,) = existing([narrow["hits"]])
    return sum(each["count"] for each in narrow["manufacturerAgg"]) == hits or narrow


@Assumed("§1.2 INF", "v3's facets of sellers had up to 1000 values", AGGREGATIONS)
def seller_counts(answer: Answer) -> Any:
    """DistributorAgg has as many sellers as requested, and counts the hits that a filter by one finds."""
    sellers = {each["company"]["id"]: each["count"] for each in answer.data["broad"]["distributorAgg"]}
    (found,) = existing([answer.data["seller"]["hits"]])
    return (len(sellers) > 10 and sellers["459"] == found > 0) or [len(sellers), sellers.get("459"), found]


# Lists and parts.
LISTS = Probe(
    '{ supSellers { id } supCategories(ids: ["4161"]) { id ancestors { id } children { ancestors { id } } } }'
)
PARTS = Probe(
    """query ($ids: [String!]!) {
        supParts(ids: $ids, country: "US", currency: "JPY") {
          mpn v3uid
          sellers { ...seller }
          all: sellers(includeBrokers: true) { ...seller }
        }
    }
    fragment seller on SupPartSeller {
        isBroker
        offers {
            inventoryLevel
            prices { quantity currency convertedCurrency }
        }
    }""",
    # FLUKE-424D by its uid, 206062-1 by one of its earlier uids, C0603C475K8PACTU by its id; and two unknown ids.
    {"ids": ["eddc25bd5de8321b", "0", "103cdb613d20cffb", "ffffffffffffffff", "9145152"]},
    parts=5,  # whether null counts is not known (§11 no. 8)
)
SPECS = Probe(
    """query ($ids: [String!]!) {
        supParts(ids: $ids) { mpn specs { attribute { shortname } value siValue valueType units displayValue } }
    }""",
    {"ids": ["71048703"]},
    parts=1,
    features=("TECH_SPECS", "LIFECYCLE"),
)


def _offers(answer: Answer) -> list[Any]:
    parts = existing(answer.data["supParts"])
    return [offer for part in parts for seller in part["all"] for offer in seller["offers"]]


@Assumed("§1.1 SDL", "v3's searches for brands, sellers and categories are made in lists", LISTS)
def whole_lists(answer: Answer) -> Any:
    """A list without arguments is whole, and has each entry once."""
    ids = [each["id"] for each in answer.data["supSellers"]]
    return (len(ids) > 100 and "11779" in ids and len(set(ids)) == len(ids)) or len(ids)


@Assumed("§1.2 SDL", "v3's root category has no parent, and its parent_uid is the last ancestor", LISTS)
def root_category(answer: Answer) -> Any:
    """The root category has the id 4161 and no ancestors, and is the first ancestor of the others."""
    (root,) = answer.data["supCategories"]
    above = Counter(str([each["id"] for each in child["ancestors"]]) for child in root["children"])
    return (root["ancestors"] == [] and list(above) == ["['4161']"]) or dict(above)


@Assumed("§1.1 INF", "v3's get_multi finds each part by its place, and leaves out unknown uids", PARTS)
def part_order(answer: Answer) -> Any:
    """SupParts returns parts in the order of the ids, null for unknown ones, and the new uid for a redirected one."""
    existing(answer.data["supParts"])
    found = [part and part["mpn"] for part in answer.data["supParts"]]
    uid = (answer.data["supParts"][2] or {}).get("v3uid")
    return (found == ["FLUKE-424D", None, "206062-1", None, "C0603C475K8PACTU"] and uid == "bd4d768f82c5628a") or found


@Assumed("§2.5 SDL", "v3's offers and broker_listings: sellers are fetched once, with brokers", PARTS)
def brokers(answer: Answer) -> Any:
    """IncludeBrokers adds brokers, which are no sellers otherwise, and takes no offer of another seller away."""
    parts = existing(answer.data["supParts"])
    sides = [[seller for part in parts for seller in part[name]] for name in ("sellers", "all")]
    added = [sum(seller["isBroker"] for seller in sellers) for sellers in sides]
    offers = [sum(len(seller["offers"]) for seller in sellers if not seller["isBroker"]) for sellers in sides]
    return (added[0] == 0 < added[1] and 0 < offers[0] == offers[1]) or [added, offers]


@Assumed("§2.6 DOC", "v3's in_stock_quantity has the same codes", PARTS)
def stock_codes(answer: Answer) -> Any:
    """Stock is a number of pieces or one of the codes -1 to -4."""
    levels = [offer["inventoryLevel"] for offer in _offers(answer)]
    return (min(levels) >= -4 and max(levels) > 0) or [min(levels), max(levels)]


@Assumed("§2.6 REC", "v3's prices: a table for each currency", PARTS)
def price_tables(answer: Answer) -> Any:
    """Prices of an offer ascend by quantity, in its own currency; converted ones are in that of the request."""
    tables = [offer["prices"] for offer in _offers(answer)]
    wrong = [table for table in tables if any(one["quantity"] > other["quantity"] for one, other in pairwise(table))]
    currencies = [
        sorted({price[name] for table in tables for price in table}) for name in ("currency", "convertedCurrency")
    ]
    is_right = "USD" in currencies[0] and currencies[1] == ["JPY"] and any(len(table) > 1 for table in tables)
    return (is_right and not wrong) or [currencies, wrong[:3]]


@Assumed("§1.2, §2.6 SDL", "v3's values, datatypes and units of specs", SPECS)
def spec_values(answer: Answer) -> Any:
    """Specs are numbers, with siValue in SI base units, or texts without units."""
    specs = existing(answer.data["supParts"])[0]["specs"]
    lengths = [float(spec["siValue"]) for spec in specs if spec["units"] in ("nm", "mm", "µm")]
    texts = [spec["units"] for spec in specs if spec["valueType"] == "text"]
    types = sorted({spec["valueType"] for spec in specs})
    return (types == ["number", "text"] and max(lengths) <= 0.01 and not any(texts)) or [types, lengths, texts]


@Assumed("§10.5 REC", "v3's lists of values, and lifecycle_status", SPECS)
def spec_texts(answer: Answer) -> Any:
    """Several values of a spec are one text with commas; the value of the life cycle is bare, the displayed one not."""
    specs = {spec["attribute"]["shortname"]: spec for spec in existing(answer.data["supParts"])[0]["specs"]}
    found = specs["color"]["displayValue"], specs["lifecyclestatus"]["value"], specs["lifecyclestatus"]["displayValue"]
    is_bare = "Last Updated" in found[2] and "Last Updated" not in found[1]
    return (found[0] == "Blue, Green, Red" and is_bare) or list(found)


EARLIER = Probe('{ supSearchMpn(q: "SN74S74N", limit: 0) { hits } }', after_new_token=True)


@Assumed("§4.1 INF", "every process may use the token that another one got", EARLIER)
def earlier_tokens(answer: Answer) -> Any:
    """A new token leaves an earlier one of the same application valid."""
    return hits(answer)["supSearchMpn"] > 0 or answer.messages
