"""Differences that the two services cannot help, in the words of docs/v3-today.md: they never count.

Each has the form that the candidate's value must have: an ignored link still has to be a link, and not that of another
element of the response. Such a *foreign* value is wrong also where the services cannot have its value in common. Pure;
used by the judge.
"""

import html
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from proxy.tools.compare.judging import matching, paths
from proxy.tools.compare.judging.findings import ABSENT, Difference, Kind

NO_SOURCE = "no source"
NO_SOURCE_REASON = "empty: the Nexar API has none"
CLICK_LINK = "click link"
SITE = "octopart.com"  # host of click links in every recorded response (contract graphql.md §2.6)
NOT_COMPUTED = "null of parts, because the service does not compute it"
LINK_ENDS = (".product_url", ".listing_url")
SNIPPET = "results[*].snippet"
_OWN = re.compile(r"\[([0-9a-f]{16})[\]#]")  # path of a part in a get_multi response
_MARK = re.compile(r"<[^>]*>")
_WORD = re.compile(r"[^\s,;()]+")

Offer = tuple[Any, ...]  # uid of its part, id of its seller (names may differ), SKU


class KnownDifference(NamedTuple):
    """Difference at a path, of some kinds and at some endpoint, whose candidate's value `fits`."""

    name: str
    path: str
    fits: Callable[[Any], bool]
    reason: str
    kinds: tuple[Kind, ...] = ("value",)
    endpoint: str | None = None


def _is_click_link(value: Any) -> bool:
    try:
        read = urlsplit(value) if isinstance(value, str) and value.isprintable() and " " not in value else None
    except ValueError:
        return False
    if read is None or read.scheme != "https" or read.hostname != SITE:
        return False
    return re.fullmatch(r"/[^/]+/a1", read.path) is not None and bool(parse_qs(read.query).get("t"))


def _matching(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


SEARCH, MATCH = "/parts/search", "/parts/match"
LINKS, OFFERS = "the service's own click link; v3's held the client's key", "**.offers[*]"
BROKERS, BROKER_LINKS = "**.broker_listings[*].listing_url", "the link of the broker's first offer"
REGION = '"" is what v3 sent from 2017 on, null before'
FORMER_UIDS = "the requested uid, where it led to a part of another; others are not known"
IS_TEXT = _matching(r"(?s)\s*\S.*")
SNIPPETS = "of parts the service's description as plain text, else null as in v3"
QUERY_ERRORS = "what is wrong with this query; the others have results"
COUNTS = [("facet", "facet_results.fields.*.missing")]
COUNTS += [(f"{name} of a field", f"stats_results.*.{name}") for name in ("mean", "stddev", "count", "missing")]
KNOWN = (
    KnownDifference(
        "msec", "msec", lambda value: type(value) in (int, Decimal) and value >= 0, "milliseconds that the proxy took"
    ),
    KnownDifference(CLICK_LINK, f"{OFFERS}.product_url", _is_click_link, LINKS),
    KnownDifference("link of a broker", BROKERS, _is_click_link, BROKER_LINKS),
    KnownDifference(
        "region", f"{OFFERS}.eligible_region", lambda value: value in (None, ""), REGION, ("value", "type", "extra")
    ),
    KnownDifference("former uids", "**.redirected_uids[*]", _matching("[0-9a-f]{16}"), FORMER_UIDS, ("missing",)),
    KnownDifference("country", "user_country", _matching("[A-Z]{2}"), "the `country` of the configuration"),
    KnownDifference("currency", "user_currency", _matching("[A-Z]{3}"), "the `currency` of the configuration"),
    KnownDifference(
        "snippet", SNIPPET, lambda value: value is None or IS_TEXT(value), SNIPPETS, ("value", "type"), SEARCH
    ),
    *(
        KnownDifference(name, path, lambda value: value is None, NOT_COMPUTED, ("type",), SEARCH)
        for name, path in COUNTS
    ),
    KnownDifference("words of an error", "message", IS_TEXT, "what is wrong, in words"),
    KnownDifference("words of a query's error", "results[*].error", IS_TEXT, QUERY_ERRORS, ("value",), MATCH),
)
REASONS = {NO_SOURCE: NO_SOURCE_REASON, **{each.name: each.reason for each in KNOWN}}


def name(endpoint: str, difference: Difference, requested_uids: frozenset[str], foreign: frozenset[str]) -> str | None:
    """Return the name of the known difference that this one is; None for another. `requested_uids` are the uids that
    the request names, `foreign` the texts that belong to another element of the response."""
    baseline, candidate, path = difference.baseline, difference.candidate, difference.path
    for known in KNOWN:
        is_here = difference.kind in known.kinds and known.endpoint in (None, endpoint)
        if not is_here or not paths.matches(known.path, path):
            continue
        if known.name == "former uids":
            own = _OWN.match(difference.place)
            fits = known.fits(baseline) and baseline not in ({own[1]} if own else requested_uids)
        elif known.name == "region":
            fits = (baseline is ABSENT or known.fits(baseline)) and known.fits(candidate)
        else:
            fits = known.fits(candidate) and candidate not in foreign
        return known.name if fits else None
    return None


def foreign(
    differences: Sequence[Difference], baseline: Any, candidate: Any, owners: Mapping[str, set[Offer]]
) -> frozenset[str]:
    """Return the texts of the candidate's response that belong to another element, given all differences of the two
    bodies, and the offers that links are known to lead to."""
    targets: defaultdict[str, set[str]] = defaultdict(set)
    for each in differences:
        if each.kind == "value" and each.path.endswith(LINK_ENDS):
            targets[each.candidate].add(each.baseline)
    # Links that several elements have although the baseline's links of these elements differ.
    found = {link for link, leading in targets.items() if len(leading) > 1}
    known = ((link, offer) for link, offer in offers(candidate) if None not in offer)
    found |= {link for link, offer in known if offer not in owners.get(link, (offer,))}
    if any(each.path == SNIPPET for each in differences):
        found |= _foreign_snippets(baseline, candidate)
    return frozenset(found)


def offers(body: Any) -> Iterator[tuple[str, Offer]]:
    """Yield the links of all offers in a v3 response, each with its offer."""
    for part in _objects(body, "offers"):
        for offer in _objects(part["offers"], "product_url"):
            seller = offer.get("seller")
            number = seller.get("id") if type(seller) is dict else None
            shown = matching.text(part.get("uid")), matching.text(number), matching.text(offer.get("sku"))
            yield matching.text(offer["product_url"]) or "", shown


def owners_of(body: Any) -> Iterator[tuple[str, Offer]]:
    """Yield the links of all offers in a response of the GraphQL endpoint, each with its offer."""
    for part in _objects(body, "v3uid"):
        for seller in _objects(part, "offers"):
            for offer in _objects(seller, "clickUrl"):
                yield offer["clickUrl"], (part["v3uid"], seller["company"]["id"], offer["sku"])


def _objects(value: Any, name: str) -> Iterator[Any]:
    """Yield the outermost objects in a JSON value that have a field."""
    pending = [value]
    while pending:
        each = pending.pop()
        if type(each) is dict and name in each:
            yield each
        elif type(each) in (dict, list):
            pending += each.values() if type(each) is dict else each


def _foreign_snippets(baseline: Any, candidate: Any) -> set[Any]:
    """Return the snippets that fit the part of another result, which does not have a fitting snippet either.

    The second condition excludes texts that variants of a part have in common."""
    texts: defaultdict[str, set[str]] = defaultdict(set)
    shown: dict[str, Any] = {}
    for body in (baseline, candidate):
        for result in _objects(body, "snippet"):
            item = result.get("item")
            part = matching.text(item.get("uid") or item.get("mpn")) if type(item) is dict else None
            if part is None:
                continue
            descriptions = item.get("descriptions")
            values = descriptions if type(descriptions) is list else []
            others = (each.get("value") for each in values if type(each) is dict)
            texts[part] |= _words(item.get("mpn"), item.get("short_description"), *others)
            if body is candidate:
                shown[part] = result["snippet"]
            else:
                texts[part] |= _words(result["snippet"])
    better: dict[str, set[str]] = {}
    for part, snippet in shown.items():
        words, own = _words(snippet), texts[part]
        # It has words of the other's texts that its own part lacks, but not the reverse. Where less than half of its
        # words are in the texts, words in common are chance.
        better[part] = {
            other
            for other in shown
            if 2 * len(known := words & texts[other]) >= len(words) and known - own and not words & own - texts[other]
        }
    return {shown[part] for part in shown if any(better[other] for other in better[part])}


def _words(*texts: Any) -> frozenset[str]:
    plain = (html.unescape(_MARK.sub("", text)) for text in texts if type(text) is str)
    return frozenset(word for text in plain for word in _WORD.findall(text.casefold()))
