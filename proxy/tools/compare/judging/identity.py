"""Identity of list elements in v3 responses, so that a moved element is recognized. Used by matching.

Identifying fields: uid of a part, else part number and manufacturer; seller (uid, else id, else name) and SKU of an
offer; quantity of a price break; reference and position of a result; otherwise the first usual field that is present.
Texts and numbers identify themselves.
"""

import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from proxy.tools.compare.judging import json_values, unknown_uids

Key = Callable[[Any], Hashable]  # returns None where the element lacks the identifying fields
USUAL = ("url", "listing_url", "sku", "mpn", "name", "value", "key", "id")


@dataclass(frozen=True)
class ElementIdentity:
    """Identity of the elements of one list: `keys` are tried in order, each on the elements that the previous ones did
    not match. With `by_position`, the others are matched by index, and labels are indexes."""

    keys: tuple[Key, ...]
    label: Callable[[Any], str | None]
    by_position: bool = False

    def unknown(self, element: Any) -> bool:
        """Return true if no key identifies the element."""
        return all(key(element) is None for key in self.keys)


def for_list(name: str, within: str, elements: Sequence[Any]) -> ElementIdentity:
    """Select the identity for a list, by its key, the key of the enclosing field, and the first elements."""
    if within == "prices":
        return BREAKS
    if name == "results":
        return FOUND if any(type(each) is dict and "item" in each for each in elements) else ASKED
    return NAMED.get(name, ANYTHING)


def text(value: Any) -> str | None:
    """Return a text or number as text; None for other values, which identify nothing."""
    return str(value) if type(value) in (str, int, Decimal) and value != "" else None


def _at(element: Any, *names: str) -> Any:
    for name in names:
        element = element.get(name) if type(element) is dict else None
    return element


def _field(name: str, element: Any) -> Hashable:
    return text(_at(element, name))


def _uid(element: Any) -> Hashable:
    """Key by uid; none for one that v3bridge computed, which no element of the baseline has."""
    uid = _field("uid", element)
    return None if unknown_uids.computed(None, uid) else uid


def _maker(part: Any) -> Hashable:
    mpn = text(_at(part, "mpn"))
    return mpn and (mpn, text(_at(part, "manufacturer", "name")) or text(_at(part, "brand", "name")))


def _offer(seller: str, names: Sequence[str], element: Any) -> Hashable:
    sku = text(_at(element, "sku"))
    return sku and (text(_at(element, "seller", seller)), sku, *(text(_at(element, name)) for name in names))


def _offer_known(seller: str, names: Sequence[str], element: Any) -> Hashable:
    return _offer(seller, names, element) if text(_at(element, "seller", seller)) else None


def _offer_label(offer: Any) -> str | None:
    seller = text(_at(offer, "seller", "name")) or text(_at(offer, "seller", "uid"))
    return " ".join(each for each in (seller, text(_at(offer, "sku"))) if each) or None


def _quantity(element: Any) -> Hashable:
    found = text(element[0]) if type(element) is list and element else None
    return found and json_values.spelling_key(found)


def _scalar(element: Any) -> Hashable:
    """Key of a scalar; two spellings of a spec value, such as `22` and `22.0`, have the same key."""
    if type(element) in (dict, list):
        return None
    message = text(element)
    return json_values.spelling_key(message) if message else json_values.canonical(element)


def _image(element: Any) -> Hashable:
    sizes = ("large_image", "medium_image", "small_image", "swatch_image")
    return next((url for size in sizes if (url := text(_at(element, size, "url")))), None)


def _seller(field: str, element: Any) -> Hashable:
    return text(_at(element, "seller", field))


def _source(element: Any) -> Hashable:
    name = _at(element, "name")
    return ("source", name) if type(name) is str else None


def _found(key: Key, element: Any) -> Hashable:
    return key(_at(element, "item"))


def _label(keys: Sequence[Key], element: Any) -> str | None:
    """Return the first identifying text or number, for display."""
    if type(element) in (dict, list):
        named = (key(element) for key in keys)
        return next((found for found in named if type(found) is str), None)
    return text(element) or json.dumps(element).strip('"')


def _identity(
    *keys: Key, label: Callable[[Any], str | None] | None = None, by_position: bool = False
) -> ElementIdentity:
    return ElementIdentity((*keys, _scalar), label or partial(_label, keys), by_position)


USUAL_KEYS: tuple[Key, ...] = (_uid, *(partial(_field, name) for name in USUAL))
VARIANT = ("packaging", "eligible_region")
PART: tuple[Key, ...] = (_uid, _maker)
BREAKS = _identity(_quantity, label=lambda element: text(element[0]) if type(element) is list and element else None)
ASKED = _identity(partial(_field, "reference"), label=lambda _: None, by_position=True)
NUMBERED: Key = partial(_field, "id")
FOUND = _identity(*(partial(_found, key) for key in (*PART, NUMBERED, *USUAL_KEYS)))
NAMED = {
    "items": _identity(*PART, *USUAL_KEYS),
    "queries": ASKED,
    "offers": _identity(
        partial(_offer, "uid", VARIANT),
        partial(_offer_known, "id", VARIANT),
        partial(_offer_known, "name", VARIANT),
        partial(_offer, "uid", ()),
        partial(_offer_known, "id", ()),
        partial(_offer, "name", ()),
        label=_offer_label,
    ),
    "imagesets": _identity(_image),
    "sources": _identity(_uid, _source),
    # Not by listing_url, a click link that differs in each response: without a seller they are compared in order.
    "broker_listings": _identity(partial(_seller, "name"), partial(_seller, "id")),
}
ANYTHING = _identity(*USUAL_KEYS)
