"""Identity of list elements in v3 responses, so that an element that has moved is recognized. Used by matching.

Parts by uid, else by part number and manufacturer; offers by seller (uid, else id, else name) and SKU; price breaks by
quantity; results by reference and position; all else by the first usual field that is present. Texts and numbers
identify themselves.
"""

import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from proxy.compare.judging import equality

Key = Callable[[Any], Hashable]  # None where an element has nothing of the kind
USUAL = ("uid", "url", "listing_url", "sku", "mpn", "name", "value", "key", "id")


@dataclass(frozen=True)
class ElementIdentity:
    """`keys` are tried one after the other, each on what the ones before left over. `by_position`: what is still left
    over belongs together where it stands at the same place, and places are what people know elements by.
    """

    keys: tuple[Key, ...]
    label: Callable[[Any], str | None]
    by_position: bool = False

    def unknown(self, element: Any) -> bool:
        """Whether nothing identifies it."""
        return all(key(element) is None for key in self.keys)


def for_list(name: str, within: str, elements: Sequence[Any]) -> ElementIdentity:
    """That of the list under a name, itself in the object under another name, by name and by what is in it."""
    if within == "prices":
        return BREAKS
    if name == "results":
        return FOUND if any(type(each) is dict and "item" in each for each in elements) else ASKED
    return NAMED.get(name, ANYTHING)


def text(value: Any) -> str | None:
    """A text or a number as text; None for what identifies nothing."""
    return str(value) if type(value) in (str, int, Decimal) and value != "" else None


def _at(element: Any, *names: str) -> Any:
    for name in names:
        element = element.get(name) if type(element) is dict else None
    return element


def _field(name: str, element: Any) -> Hashable:
    return text(_at(element, name))


def _maker(part: Any) -> Hashable:
    mpn = text(_at(part, "mpn"))
    return mpn and (mpn, text(_at(part, "manufacturer", "name")) or text(_at(part, "brand", "name")))


def _offer(seller: str, names: Sequence[str], element: Any) -> Hashable:
    sku = text(_at(element, "sku"))
    return sku and (text(_at(element, "seller", seller)), sku, *(text(_at(element, name)) for name in names))


def _offer_known(seller: str, names: Sequence[str], element: Any) -> Hashable:
    """Where the seller is known by that field."""
    return _offer(seller, names, element) if text(_at(element, "seller", seller)) else None


def _offer_label(offer: Any) -> str | None:
    seller = text(_at(offer, "seller", "name")) or text(_at(offer, "seller", "uid"))
    return " ".join(each for each in (seller, text(_at(offer, "sku"))) if each) or None


def _quantity(element: Any) -> Hashable:
    found = text(element[0]) if type(element) is list and element else None
    return found and equality.spelling_key(found)


def _quantity_label(element: Any) -> str | None:
    return text(element[0]) if type(element) is list and element else None


def _scalar(element: Any) -> Hashable:
    """`22` and `22.0` are one spec value, in two spellings."""
    if type(element) in (dict, list):
        return None
    message = text(element)
    return equality.spelling_key(message) if message else equality.canonical(element)


def _image(element: Any) -> Hashable:
    sizes = ("large_image", "medium_image", "small_image", "swatch_image")
    return next((url for size in sizes if (url := text(_at(element, size, "url")))), None)


def _seller_name(element: Any) -> Hashable:
    return text(_at(element, "seller", "name"))


def _source(element: Any) -> Hashable:
    """A source without a name is one, too."""
    name = _at(element, "name")
    return ("source", name) if type(name) is str else None


def _found(key: Key, element: Any) -> Hashable:
    return key(_at(element, "item"))


def _label(keys: Sequence[Key], element: Any) -> str | None:
    """For people: the first text or number that identifies it."""
    if type(element) in (dict, list):
        named = (key(element) for key in keys)
        return next((found for found in named if type(found) is str), None)
    return text(element) or json.dumps(element).strip('"')


def _identity(
    *keys: Key, label: Callable[[Any], str | None] | None = None, by_position: bool = False
) -> ElementIdentity:
    return ElementIdentity((*keys, _scalar), label or partial(_label, keys), by_position)


def _nowhere(_: Any) -> None:
    """What is known by its position."""


USUAL_KEYS: tuple[Key, ...] = tuple(partial(_field, name) for name in USUAL)
VARIANT = ("packaging", "eligible_region")
PART: tuple[Key, ...] = (partial(_field, "uid"), _maker)
BREAKS = _identity(_quantity, label=_quantity_label)
ASKED = _identity(partial(_field, "reference"), label=_nowhere, by_position=True)
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
    "sources": _identity(partial(_field, "uid"), _source),
    "broker_listings": _identity(_seller_name, *USUAL_KEYS),
}
ANYTHING = _identity(*USUAL_KEYS)
