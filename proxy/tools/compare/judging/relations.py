"""Values that belong to another element of the response, such as the link of another offer: such a *foreign* value is
wrong also where the services cannot have its value in common. Pure; used by the judge."""

import html
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proxy.tools.compare.judging import matching
from proxy.tools.compare.judging.findings import Difference

LINKS = (".product_url", ".listing_url")
SNIPPET = "results[*].snippet"
_MARK = re.compile(r"<[^>]*>")
_WORD = re.compile(r"[^\s,;()]+")

Words = frozenset[str]
Offer = tuple[Any, ...]  # uid of its part, id of its seller (names may differ), SKU


def foreign(
    differences: Sequence[Difference], baseline: Any, candidate: Any, owners: Mapping[str, set[Offer]]
) -> frozenset[str]:
    """Return the texts of the candidate's response that belong to another element, given all differences of the two
    bodies, and the offers that links are known to lead to."""
    found = _shared_links(differences)
    known = ((link, offer) for link, offer in offers(candidate) if None not in offer)
    found |= {link for link, offer in known if offer not in owners.get(link, (offer,))}
    if any(each.path == SNIPPET for each in differences):
        found |= _foreign_snippets(baseline, candidate)
    return found


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


def _shared_links(differences: Sequence[Difference]) -> frozenset[str]:
    """Return the links that several elements have although the baseline's links of these elements differ."""
    targets: defaultdict[str, set[str]] = defaultdict(set)
    for each in differences:
        if each.kind == "value" and each.path.endswith(LINKS):
            targets[each.candidate].add(each.baseline)
    return frozenset(link for link, leading in targets.items() if len(leading) > 1)


def _foreign_snippets(baseline: Any, candidate: Any) -> frozenset[str]:
    """Return the snippets that fit the part of another result, which does not have a fitting snippet either.

    The second condition excludes texts that variants of a part have in common."""
    texts: defaultdict[str, set[str]] = defaultdict(set)
    shown: dict[str, Any] = {}
    for part, snippet, own in _results(candidate):
        shown[part] = snippet
        texts[part] |= own
    for part, snippet, own in _results(baseline):
        texts[part] |= own | _words(snippet)
    better: dict[str, set[str]] = {}
    for part, snippet in shown.items():
        words = _words(snippet)
        better[part] = {other for other in shown if _fits(words, texts[other], texts[part])}
    return frozenset(shown[part] for part in shown if any(better[other] for other in better[part]))


def _fits(snippet: Words, texts: set[str], own: set[str]) -> bool:
    """Return true if a snippet has words of a part's texts that its own part lacks, but not the reverse.

    Where less than half of its words are in the texts, words in common are chance."""
    known = snippet & texts
    return 2 * len(known) >= len(snippet) and bool(known - own) and not snippet & own - texts


def _results(body: Any) -> Iterator[tuple[str, Any, Words]]:
    """Yield part, snippet and words of the part's own texts of each result of a search."""
    for result in _objects(body, "snippet"):
        item = result.get("item")
        part = matching.text(item.get("uid") or item.get("mpn")) if type(item) is dict else None
        if part is not None:
            descriptions = item.get("descriptions")
            values = descriptions if type(descriptions) is list else []
            texts = (each.get("value") for each in values if type(each) is dict)
            yield part, result.get("snippet"), _words(item.get("mpn"), item.get("short_description"), *texts)


def _words(*texts: Any) -> Words:
    plain = (html.unescape(_MARK.sub("", text)) for text in texts if type(text) is str)
    return frozenset(word for text in plain for word in _WORD.findall(text.casefold()))
