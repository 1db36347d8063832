"""Which part a line is: found, found as another number, ambiguous, or not found; and why. Pure.

A line is looked up at one part first; at more only where several match, or to say who makes a number that is not found.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from proxy.tools.sheet import offers
from proxy.tools.sheet.lines import Choice, Line
from proxy.tools.sheet.offers import CANDIDATES, OfferRules, Part, PartQuery, PartResult
from proxy.traffic.bom_columns import plain

# Outcomes of a line; those of COMPLETE are answers: that a distributor does not sell a part is one, too.
FOUND, NO_VALUE, NOT_PRICED, FOUND_AS, AMBIGUOUS, PARTLY, NOT_FOUND, FAILED, LEFT_OUT, NOT_FETCHED = OUTCOMES = (
    *("found", "no value", "not priced", "found as", "ambiguous", "partly fetched", "not found", "failed", "left out"),
    "not fetched",
)
COMPLETE = (FOUND, NO_VALUE)
UNFINISHED = (PARTLY, FAILED, NOT_FETCHED)  # a later run may have more
DOUBTFUL = (NOT_PRICED, FOUND_AS, AMBIGUOUS, PARTLY)
NO_PART = f"{NOT_FOUND}: "
PARTS_MAX = 1 + CANDIDATES  # that one number may cost

# Digi-Key, Mouser, LCSC and Newark number in forms of their own; those of others may be anybody's numbers.
_DISTRIBUTOR_NUMBER = re.compile(r".+-ND|\d{2,3}-(?=.*[A-Z])\S{3,}|C\d{3,9}|\d{2}[A-Z]\d{4}", re.IGNORECASE)

# Makers that have become one: a list has the name of today and the service that of the part, or the other way round.
_MERGED = """
    analogdevices maxim lineartechnology hittite; onsemi fairchild sanyo; nxp freescale philips nexperia;
    infineon internationalrectifier cypress spansion; microchip atmel microsemi micrel; kemet yageo; intel altera;
    renesas intersil idt integrateddevice dialog; texasinstruments nationalsemiconductor burrbrown; amd xilinx;
    broadcom avago; littelfuse ixys; diodes zetex pericom; vishay siliconix; teconnectivity tyco
"""

Results = Callable[[PartQuery], PartResult | None]


class Decision(NamedTuple):
    """What a line is. `text` is its status; `part`, which has a `name`, was found by `query`."""

    outcome: str
    text: str
    query: PartQuery | None = None
    part: Part | None = None
    name: tuple[str, str] = ("", "")
    """Number and manufacturer."""


def decide(line: Line, results: Results, rules: OfferRules, currency: str) -> Decision | PartQuery:
    """Return what a line is, or the query whose result is needed to know: by the first number whose part has stock, or
    else by the first that is found."""
    tried: list[tuple[Choice, Decision]] = []
    taken: int | None = None
    for place, choice in enumerate(line.choices):
        decision = _judged(choice, results, currency)
        if isinstance(decision, PartQuery):
            return decision
        tried.append((choice, decision))
        if decision.part is None:
            continue
        counting = offers.allowed(decision.part.offers, rules, line.skus)
        has_stock = any(
            offer.stock is not None and (offer.stock > 0 or offer.stock == offers.YES) for offer in counting
        )
        if has_stock or taken is None:
            taken = place
        if has_stock:
            break
    if taken is None:
        failed = next((decision for _, decision in tried if decision.outcome == FAILED), tried[0][1])
        if len(tried) == 1 or failed.outcome == FAILED:
            return failed
        reasons = (f"{choice.mpn}: {each.text.removeprefix(NO_PART)}" for choice, each in tried)
        return Decision(NOT_FOUND, NO_PART + "; ".join(reasons))
    decision = tried[taken][1]
    if taken == 0:
        return decision
    before = tried[:taken]
    why = (f"{choice.mpn} {'is not found' if each.part is None else 'has no stock'}" for choice, each in before)
    name = f": alternative {' of '.join(decision.name)}" if decision.outcome == FOUND else "; an alternative"
    return decision._replace(text=f"{decision.text}{name}, as {', '.join(why)}")


def _judged(choice: Choice, results: Results, currency: str) -> Decision | PartQuery:
    query = PartQuery(choice.mpn, choice.manufacturer, choice.sku, currency)
    result = results(query)
    if result is None:
        return query
    if result.error is not None:
        return Decision(FAILED, f"{FAILED}: {result.error}")
    if not result.hits:
        return _not_found(choice, results, query)
    if result.hits > 1:
        more = query._replace(limit=CANDIDATES)
        several = results(more)
        if several is None:
            return more
        # What could not be fetched of the others leaves the doubt.
        result, query = (several, more) if several.parts else (result, query)
    return _among(choice, result, query)


def _among(choice: Choice, result: PartResult, query: PartQuery) -> Decision:
    if not result.parts:
        return Decision(FAILED, f"{FAILED}: no part came")
    spelled_so = [part for part in result.parts if choice.mpn.casefold() == part.mpn.casefold()]
    equal = spelled_so if len(spelled_so) == 1 else [part for part in result.parts if _is_equal(choice, part)]
    first = (equal or result.parts)[0]
    if len(equal) == 1 and (result.hits == 1 or len(result.parts) > 1):
        return Decision(FOUND, FOUND, query, first, (first.mpn, first.manufacturer))
    if result.hits == 1:
        text = f"{FOUND_AS} {first.mpn} of {first.manufacturer}"
        return Decision(FOUND_AS, text, query, first, (first.mpn, first.manufacturer))
    shown = equal if len(equal) > 1 else result.parts
    names = "; ".join(f"{part.mpn} of {part.manufacturer}" for part in shown)
    hits = result.hits if len(equal) < 2 else len(equal)
    more = f" and {hits - len(shown)} more" if hits > len(shown) else ""
    text = f"{AMBIGUOUS}: {names}{more}; these values are of the first"
    return Decision(AMBIGUOUS, text, query, first, (first.mpn, first.manufacturer))


def _is_equal(choice: Choice, part: Part) -> bool:
    if choice.mpn:
        return offers.bare(choice.mpn) == offers.bare(part.mpn)
    return any(offers.has_sku(offer, (choice.sku,)) for offer in part.offers)


def _not_found(choice: Choice, results: Results, query: PartQuery) -> Decision | PartQuery:
    """Return why there is no part: which manufacturers make the number, or that it is a distributor's."""
    if choice.mpn and _DISTRIBUTOR_NUMBER.fullmatch(choice.mpn):
        as_sku = PartQuery("", "", choice.mpn, query.currency)
        result = results(as_sku)
        if result is None:
            return as_sku
        if result.parts:
            found = _among(Choice("", sku=choice.mpn), result, as_sku)
            return found._replace(text=f"{FOUND}: as distributor's number") if found.outcome == FOUND else found
    if not choice.manufacturer:
        return Decision(NOT_FOUND, NOT_FOUND)
    alone = query._replace(manufacturer="")
    result = results(alone)
    if result is None:
        return alone
    text = f"{NO_PART}no part of {choice.manufacturer}"
    if result.parts:
        part = result.parts[0]
        makers = [plain(choice.manufacturer), plain(part.manufacturer)]
        merged = (tuple(group.split()) for group in _MERGED.split(";"))
        is_one = any(all(maker.startswith(group) for maker in makers) for group in merged)
        if result.hits == 1 and _is_equal(choice, part) and is_one:
            text = f"{FOUND_AS} {part.mpn} of {part.manufacturer}"
            return Decision(FOUND_AS, text, alone, part, (part.mpn, part.manufacturer))
        others = " and others" if result.hits > 1 else ""
        number = "it" if _is_equal(choice, part) else part.mpn
        text += f"; {part.manufacturer}{others} {'make' if others else 'makes'} {number}"
    elif result.error is None:
        text = f"{NO_PART}no part has this number"
    return Decision(NOT_FOUND, text)
