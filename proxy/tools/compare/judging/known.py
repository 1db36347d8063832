"""Differences that the two services cannot help, in the words of docs/v3-today.md: they never count.

Each has the form that the candidate's value must have: an ignored link still has to be a link, and not that of another
element of the response (relations.py).
"""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from proxy.tools.compare.judging import paths
from proxy.tools.compare.judging.findings import ABSENT, Difference, Kind

NO_SOURCE = "no source"
NO_SOURCE_REASON = "empty: the Nexar API has none"
CLICK_LINK = "click link"
SITE = "octopart.com"  # host of click links in every recorded response (contract graphql.md §2.6)
_CLICK = re.compile(r"/[^/]+/a1")
_UID = re.compile(r"[0-9a-f]{16}")
_OWN = re.compile(r"\[([0-9a-f]{16})[\]#]")  # path of a part in a get_multi response
NOT_COMPUTED = "null of parts, because the service does not compute it"


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
    return _CLICK.fullmatch(read.path) is not None and bool(parse_qs(read.query).get("t"))


def _is_number(value: Any) -> bool:
    return type(value) in (int, Decimal) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_text_or_null(value: Any) -> bool:
    return value is None or _is_text(value)


def _matching(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _is_null(value: Any) -> bool:
    return value is None


def _is_blank(value: Any) -> bool:
    return value is None or value == ""


SEARCH, MATCH = "/parts/search", "/parts/match"
LINKS, OFFERS = "the service's own click link; v3's held the client's key", "**.offers[*]"
BROKERS, BROKER_LINKS = "**.broker_listings[*].listing_url", "the link of the broker's first offer"
REGION = '"" is what v3 sent from 2017 on, null before'
FORMER_UIDS = "the requested uid, where it led to a part of another; others are not known"
SNIPPETS = "of parts the service's description as plain text, else null as in v3"
QUERY_ERRORS = "what is wrong with this query; the others have results"
COUNTS = [("facet", "facet_results.fields.*.missing")]
COUNTS += [(f"{name} of a field", f"stats_results.*.{name}") for name in ("mean", "stddev", "count", "missing")]
KNOWN = (
    KnownDifference("msec", "msec", _is_number, "milliseconds that the proxy took"),
    KnownDifference(CLICK_LINK, f"{OFFERS}.product_url", _is_click_link, LINKS),
    KnownDifference("link of a broker", BROKERS, _is_click_link, BROKER_LINKS),
    KnownDifference("region", f"{OFFERS}.eligible_region", _is_blank, REGION, ("value", "type", "extra")),
    KnownDifference("former uids", "**.redirected_uids[*]", _matching(_UID.pattern), FORMER_UIDS, ("missing",)),
    KnownDifference("country", "user_country", _matching("[A-Z]{2}"), "the `country` of the configuration"),
    KnownDifference("currency", "user_currency", _matching("[A-Z]{3}"), "the `currency` of the configuration"),
    KnownDifference("snippet", "results[*].snippet", _is_text_or_null, SNIPPETS, ("value", "type"), SEARCH),
    *(KnownDifference(name, path, _is_null, NOT_COMPUTED, ("type",), SEARCH) for name, path in COUNTS),
    KnownDifference("words of an error", "message", _is_text, "what is wrong, in words"),
    KnownDifference("words of a query's error", "results[*].error", _is_text, QUERY_ERRORS, ("value",), MATCH),
)
REASONS = {NO_SOURCE: NO_SOURCE_REASON, **{each.name: each.reason for each in KNOWN}}


def name(endpoint: str, difference: Difference, requested_uids: frozenset[str], foreign: frozenset[str]) -> str | None:
    """Return the name of the known difference that this one is; None for another. `requested_uids` are the uids that
    the request names, `foreign` the texts that belong to another element of the response."""
    for known in KNOWN:
        if (
            difference.kind in known.kinds
            and known.endpoint in (None, endpoint)
            and paths.matches(known.path, difference.path)
        ):
            return known.name if _fits(known, difference, requested_uids, foreign) else None
    return None


def _fits(
    known: KnownDifference, difference: Difference, requested_uids: frozenset[str], foreign: frozenset[str]
) -> bool:
    baseline, candidate = difference.baseline, difference.candidate
    if known.name == "region":
        return (baseline is ABSENT or known.fits(baseline)) and known.fits(candidate)
    if known.name == "former uids":
        own = _OWN.match(difference.place)
        return known.fits(baseline) and baseline not in ({own[1]} if own else requested_uids)
    return known.fits(candidate) and candidate not in foreign
