"""Functions that mapping files name in `through`: each converts an upstream value to a v3 value.

Pure and quick: they run for every price and offer of every response. A name that none has fails at start.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from proxy.mapping.tables import Tables, source_uids


def prices_by_currency(prices: Iterable[Any]) -> dict[str, list[tuple[int | str, ...]]]:
    """Return v3's price table, such as `{"USD": [[1, "0.64700"], …]}` (contract v3-rest.md §3.4). Upstream sorts
    prices by quantity; a price without a currency (two in 4 168 recorded offers) repeats another and has no place in
    v3's format."""
    table: dict[str, list[tuple[int | str, ...]]] = {}
    points: list[tuple[int | str, ...]] = []
    currency = None
    for price in prices:
        if price.currency != currency:  # in most tables only the first is
            currency = price.currency
            points = table.setdefault(currency, [])
        points.append((price.quantity, f"{price.price:.5f}"))
    # Here, once, rather than with a test for each price.
    table.pop("", None)
    return table


def timestamp(time: str) -> str:
    """Format an RFC 3339 time as v3 did: `YYYY-MM-DDTHH:MM:SSZ`, no fraction (contract v3-rest.md §3.4)."""
    moment = datetime.fromisoformat(time)
    if time[7::3] == "-T::Z":  # a valid time with these separators is in v3's format
        return time
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def naive_id(seller_id: str, sku: str, region: str | None) -> str:
    """Return `<seller id>_<sku>`, with `_<region>` if there is one: the format of 2018 (contract v3-rest.md §3.3)."""
    return f"{seller_id}_{sku}_{region}" if region else f"{seller_id}_{sku}"


def offer_rank(authorized: bool, stock: int, prices: Sequence[Any], home: str) -> int:
    """Return the sort key of v3's order of offers (contract v3-rest.md §3.4): authorized first; within each group in
    stock, out of stock, foreign currency, no price."""
    # Four ranks for each group, see the returns below.
    rank = 0 if authorized else 4
    if not prices:
        return rank + 3
    if prices[0].currency != home and not any(price.currency == home for price in prices):
        return rank + 2
    # Of the negative codes only -2 means in stock, in an unknown quantity (contract graphql.md §2.6).
    return rank if stock > 0 or stock == -2 else rank + 1


def image_mimetype(url: str) -> str:
    """Return v3's media type, such as `image/jpg`, from the file extension (contract v3-rest.md §3.5)."""
    ending = url.rsplit(".", 1)[-1].lower()
    # image/jpg is no registered type, but it is what v3 sent; most images have no other extension.
    return f"image/{ending}" if ending in {"png", "gif", "svg", "webp"} else "image/jpg"


def subtypes(document_name: str) -> list[str]:
    """Return v3's token of a document name: `rohs_statement` for `Rohs Statement` (contract graphql.md §10.4)."""
    return ["_".join(document_name.lower().split())] if document_name else []


def cad_downloads(cad: Any) -> list[str]:
    formats = ("Altium", "Eagle", "Orcad", "Kicad")
    urls = (getattr(cad, f"downloadUrl{name}") for name in formats if getattr(cad, f"has{name}"))
    return [url for url in urls if url]


def redirected(uid: str, requested: str | None) -> list[str]:
    """Return the requested uid if it led to a part with another uid (contract v3-rest.md §1)."""
    return [requested] if requested and requested != uid else []


def converted_price(price: float, currency: str, converted: float, converted_to: str, wanted: str) -> float | None:
    """Return the price in the wanted currency, None where the service has no rate: it then answers in another currency,
    or with the price itself, as if both currencies were worth the same."""
    if converted_to != wanted or (converted == price and price and currency != wanted):
        return None
    return converted


def lifecycle_status(specs: Iterable[Any]) -> str | None:
    """Return the lifecycle status of a part, such as `Production`. The text for display also says how old it is
    (contract graphql.md §2.6)."""
    found = (spec.value or spec.displayValue for spec in specs if spec.attribute.shortname == "lifecyclestatus")
    return next(found, None)


def case_package(specs: Iterable[Any]) -> str | None:
    """Return the package of a part, such as `SOIC`."""
    return next((spec.displayValue for spec in specs if spec.attribute.shortname == "case_package"), None)


# Every function above is one, and these.
TRANSFORMS: dict[str, Callable[..., Any]] = {
    "is_false": operator.not_,
    "text": str,
    "listed": lambda value: [value],
    "names": lambda named: [each.name for each in named],
    "first_click": lambda offers: offers[0].clickUrl if offers else None,  # of a broker
    # What a document collection holds (names of the SDL descriptions; graphql.md §11, no. 10).
    "is_datasheet_group": lambda name: "datasheet" in name.lower(),
    "is_compliance_group": lambda name: "compliance" in name.lower(),
}
TRANSFORMS |= {name: each for name, each in vars().items() if getattr(each, "__module__", None) == __name__}


def of_tables(tables: Tables) -> dict[str, Callable[..., Any]]:
    uids, specs = tables.uids, tables.specs
    sources, sellers, category_uid = uids["Source"], uids["Seller"], uids["Category"].uid
    recorded = source_uids(uids)

    def source_name(name: str) -> str:
        """Return v3's name of a source. Most sources are sellers, so their table is the fallback."""
        v3_name, entry = sources.name("", name), sellers.named.get(name)
        return v3_name if v3_name != name else sellers.name((entry and entry.id) or "", name)

    def source_uid(name: str, ids: Mapping[str, tuple[str, ...]]) -> str:
        """Return the uid of a source, by its name and the ids of all sellers."""
        if name in ids and name.casefold() not in sources.own:
            return sellers.uid(ids[name][0], name)
        v3_name = source_name(name)
        return recorded.get(v3_name.casefold()) or recorded.get(name.casefold()) or sources.digest(v3_name)

    def category_uids(categories: Iterable[Any]) -> list[str]:
        return [category_uid(category.id, category.name) for category in categories]

    return {
        "seller_uid": sellers.uid,
        "brand_uid": uids["Brand"].uid,
        "manufacturer_uid": uids["Manufacturer"].uid,
        "category_uid": category_uid,
        "category_line": lambda category: category_uids([*category.ancestors, category]),  # in v3's order: root first
        "category_uids": category_uids,
        # None for the root category.
        "parent_uid": lambda above: category_uid(above[-1].id, above[-1].name) if above else None,
        "seller_name": sellers.name,
        "source_uid": source_uid,
        "source_name": source_name,
        "spec_key": specs.key,
        "spec_name": specs.name,
        "spec_shown": specs.is_shown,
        "spec_datatype": specs.datatype,
        "spec_has_unit": specs.has_unit,
        "spec_values": specs.values,
        "spec_low": partial(specs.end, "low"),
        "spec_high": partial(specs.end, "high"),
        "spec_display": specs.display,
    }
