"""Functions that mapping files name in `through`: each converts an upstream value to a v3 value. And v3's uids and
names of companies, categories and sources, both ways.

Pure and quick: they run for every price and offer of every response. A name that none has fails at start.

The service has no field for uids (contract graphql.md §1.5). Those on record stand in mappings/uids.yaml, and a site's
own in the file of the setting `uids`. Every other object gets a uid made of a tag of six hex digits for its kind and
its numeric id in ten, which can be turned back; a source, of which only the name is known, a tag and a digest.
"""

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from proxy.mapping.specs import SpecNames

# Words that a reader of logs may recognize, by kind; any six digits that no recorded uid begins with would do.
TAGS = {"Seller": "5e11e4", "Brand": "b4a2d0", "Manufacturer": "3a2fac", "Category": "ca7e60", "Source": "50c4ce"}
KINDS = tuple(TAGS)
RENAMED = frozenset({"Seller", "Source"})  # kinds that are sent under v3's name; the others keep the service's
REMEMBERED = 65_536  # entries of the cache of uids, far more than there are companies and categories


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
    """Return the lifecycle status, such as `Production`; its text for display has an age, too (graphql.md §2.6)."""
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


class KnownUid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entry of a uid table. `also` are other names of the same object; `source` is the origin of the entry."""

    uid: str
    name: str
    id: str | None = None
    also: tuple[str, ...] = ()
    year: int | None = None
    source: str = "recorded"

    @property
    def names(self) -> tuple[str, ...]:
        return self.name, *self.also


class UidTarget(NamedTuple):
    """Object that a uid or a name refers to: by numeric id, or by all names where the id is not known."""

    id: str | None
    names: tuple[str, ...] = ()


class Uids:
    """v3 uids of one kind of object, both ways. Responses hold the newest uid of an object; requests may use any of
    them. `named` are the objects by what v3 or upstream calls them, `by_any_name` the newest uids by name in small
    letters, `own` those of a site's table."""

    def __init__(self, kind: str, shipped: Iterable[KnownUid], own: Sequence[KnownUid] = ()) -> None:
        """Build from the entries of the shipped table and a site's `own`, which take precedence whatever their year."""
        self._tag = TAGS[kind]
        self._renamed = kind in RENAMED
        self._entries: dict[str, list[KnownUid]] = defaultdict(list)  # by id, or by each name in small letters
        self.named: dict[str, UidTarget] = {}
        self._targets: dict[str, UidTarget] = {}
        # Entries without a year come first; within a year the order of the file is kept.
        tables = [sorted(entries, key=lambda entry: entry.year or 0) for entries in (shipped, own)]
        # An entry may have names only, and another one with one of them the id.
        ids = {name.casefold(): entry.id for entry in chain(*tables) if entry.id for name in entry.names}
        self.own = {name.casefold(): entry.uid for entry in tables[1] for name in entry.names}
        # A site knows the uids of its own data, so its table is added last.
        for table in tables:
            for entry in table:
                for entries in self._entries.values() if table is tables[1] else ():  # a uid stands for one object
                    entries[:] = [each for each in entries if each.uid != entry.uid]
                names = [*map(str.casefold, entry.names)]
                id_ = entry.id or next((ids[name] for name in names if name in ids), None)
                self._targets[entry.uid] = UidTarget(id_, entry.names)
                self.named |= dict.fromkeys(entry.names, self._targets[entry.uid])
                for key in (id_,) if id_ else names:
                    self._entries[key].append(entry)
        self._newest = {key: entries[-1] for key, entries in self._entries.items() if entries}
        self.by_any_name: dict[str, str] = {}
        for name, target in self.named.items():
            if newest := self._newest.get(target.id or "") or self._newest.get(name.casefold()):
                self.by_any_name[name.casefold()] = newest.uid
        # Per object, not as a decorator, which would keep every Uids alive and share one cache between kinds.
        self.uid, self.name = lru_cache(REMEMBERED)(self._uid), lru_cache(REMEMBERED)(self._name)

    def _uid(self, numeric_id: str, name: str) -> str:
        """Return 16 hex digits. Raises ValueError if the upstream id is not a number below 2^40."""
        entry = self._newest.get(numeric_id) or self._newest.get(name.casefold())
        return entry.uid if entry else self.computed(numeric_id)

    def computed(self, numeric_id: str) -> str:
        """Return the computed uid, which can be converted back, whether or not the object also has a recorded one."""
        number = int(numeric_id)
        # Ten hex digits of the sixteen are left for it.
        if not 0 <= number < 1 << 40:
            raise ValueError("an id of the service does not fit into a v3 uid")
        return f"{self._tag}{number:010x}"

    def _name(self, numeric_id: str, name: str) -> str:
        entry = self._newest.get(numeric_id) or self._newest.get(name.casefold())
        return entry.name if entry and self._renamed else name

    def on_record(self, numeric_id: str, name: str) -> tuple[list[str], list[str]]:
        """Return the names on record of an object, and all uids that lead to it; the last one is used in responses."""
        entries = self._entries.get(numeric_id, []) + self._entries.get(name.casefold(), [])
        uids = [self.computed(numeric_id), *(entry.uid for entry in entries), self.uid(numeric_id, name)]
        return [each for entry in entries for each in entry.names], uids

    def target(self, uid: str) -> UidTarget | None:
        """Return the object that a uid refers to; None if it is neither in a table nor computed."""
        number = re.fullmatch(rf"{self._tag}([0-9a-f]{{10}})", uid)
        return self._targets.get(uid) or (UidTarget(str(int(number[1], 16))) if number else None)


def source_uids(uids: Mapping[str, Uids]) -> dict[str, str]:
    """Return the recorded uids of sources, by name in small letters. Those that are sellers have the seller's uid,
    unless a site's own table gives them another."""
    return {**uids["Source"].by_any_name, **uids["Seller"].by_any_name, **uids["Source"].own}


def of_tables(uids: Mapping[str, Uids], specs: SpecNames) -> dict[str, Callable[..., Any]]:
    sources, sellers, category_uid = uids["Source"], uids["Seller"], uids["Category"].uid
    recorded = source_uids(uids)

    def source_name(name: str) -> str:
        """Return v3's name of a source. Most sources are sellers, so their table is the fallback."""
        v3_name, entry = sources.name("", name), sellers.named.get(name)
        return v3_name if v3_name != name else sellers.name((entry and entry.id) or "", name)

    def source_uid(name: str, ids: Mapping[str, tuple[str, ...]]) -> str:
        """Return the uid of a source, by its name and the ids of all sellers; else by a digest, because the upstream
        has no ids of sources."""
        if name in ids and name.casefold() not in sources.own:
            return sellers.uid(ids[name][0], name)
        v3_name = source_name(name)
        uid = recorded.get(v3_name.casefold()) or recorded.get(name.casefold())
        return uid or f"{TAGS['Source']}{blake2b(v3_name.encode(), digest_size=5).hexdigest()}"

    return {
        "seller_uid": sellers.uid,
        "brand_uid": uids["Brand"].uid,
        "manufacturer_uid": uids["Manufacturer"].uid,
        "category_uid": category_uid,
        # In v3's order: root first.
        "category_line": lambda above: [category_uid(each.id, each.name) for each in (*above.ancestors, above)],
        "category_uids": lambda categories: [category_uid(each.id, each.name) for each in categories],
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
