"""Functions that mapping files name in `through`: each converts an upstream value to a v3 value.

Pure and quick: they run for every price and offer of every response. Those that read a table are in tables.py; a name
that is in neither fails at start.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

Timestamp = Annotated[str, msgspec.Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]


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


def timestamp(time: str) -> Timestamp:
    """Format an RFC 3339 time as v3 did: `YYYY-MM-DDTHH:MM:SSZ`, no fraction (contract v3-rest.md §3.4)."""
    moment = datetime.fromisoformat(time)
    if time[7::3] == "-T::Z":  # a valid time with these separators is in v3's format
        return time
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def is_false(value: bool) -> bool:
    """Return whether a flag is not set."""
    return not value


def text(value: Any) -> str:
    """Convert a number to a string."""
    return str(value)


def listed(value: Any) -> list[Any]:
    """Return a list with the value only."""
    return [value]


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


def is_datasheet_group(name: str) -> bool:
    """Return whether a document collection holds datasheets (names of the SDL descriptions; graphql.md §11, no. 10)."""
    return "datasheet" in name.lower()


def is_compliance_group(name: str) -> bool:
    """Return whether a document collection holds compliance documents."""
    return "compliance" in name.lower()


def subtypes(document_name: str) -> list[str]:
    """Return v3's token of a document name: `rohs_statement` for `Rohs Statement` (contract graphql.md §10.4)."""
    return ["_".join(document_name.lower().split())] if document_name else []


def cad_downloads(cad: Any) -> list[str]:
    """Return the URLs of the available formats of a CAD model."""
    formats = ("Altium", "Eagle", "Orcad", "Kicad")
    urls = (getattr(cad, f"downloadUrl{name}") for name in formats if getattr(cad, f"has{name}"))
    return [url for url in urls if url]


def names(named: list[Any]) -> list[str]:
    """Return the name of each object."""
    return [each.name for each in named]


def redirected(uid: str, requested: str | None) -> list[str]:
    """Return the requested uid if it led to a part with another uid (contract v3-rest.md §1)."""
    return [requested] if requested and requested != uid else []


def first_click(offers: list[Any]) -> str | None:
    """Return the link of a broker's first offer, None without offers."""
    return offers[0].clickUrl if offers else None


def converted_price(price: float, currency: str, converted: float, converted_to: str, wanted: str) -> float | None:
    """Return the price in the wanted currency, None where the service has no rate: it then answers in another currency,
    or with the price itself, as if both currencies were worth the same."""
    if converted_to != wanted or (converted == price and price and currency != wanted):
        return None
    return converted


def lifecycle_status(specs: Iterable[Any]) -> str | None:
    """Return the lifecycle status of a part, such as `Production`. The text for display also says how old it is
    (contract graphql.md §2.6)."""
    return next(
        (spec.value or spec.displayValue for spec in specs if spec.attribute.shortname == "lifecyclestatus"), None
    )


def case_package(specs: Iterable[Any]) -> str | None:
    """Return the package of a part, such as `SOIC`."""
    return next((spec.displayValue for spec in specs if spec.attribute.shortname == "case_package"), None)


# Every function of this module is one.
TRANSFORMS: dict[str, Callable[..., Any]] = {name: each for name, each in vars().items() if inspect.isfunction(each)}
