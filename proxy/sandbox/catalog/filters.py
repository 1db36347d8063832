"""Filters and sort keys as SQL over the table `parts p` (contract graphql.md §2.4).

Pure: it decides what the conditions mean, the store runs it. Whatever the user wrote travels as a parameter,
never inside the SQL text. Values of one key are alternatives, keys add up.
"""
# ruff: noqa: S608  the SQL is put together from pieces written here; what users write travels as parameters

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from proxy.sandbox.catalog import matching, parts, records, units, vocabulary

_RANGE = re.compile(r"\(\s*(.*?)\s*__\s*(.*?)\s*\)")
CAD_STATES = {
    "symbol_footprint_3d": parts.SYMBOL_FOOTPRINT_3D,
    "symbol_footprint": parts.SYMBOL_FOOTPRINT,
    "none": parts.NO_CAD,
}
_SORTS = {
    "median_price_1000": "p.median",
    "avg_price": "p.average",
    "num_authsuppliers": "p.authorized",
    "mpn": "p.mpn COLLATE NOCASE",
    "manufacturer.displayname": "(SELECT m.name FROM makers m WHERE m.id = p.maker) COLLATE NOCASE",
}


class Clause(NamedTuple):
    """A piece of SQL with its parameters."""

    sql: str
    params: tuple[str | int | float | bytes, ...] = ()


NOTHING = Clause("0")
# Tells the values that occur for a property in the whole catalog.
Values = Callable[[str], Sequence[float | str]]


class Companies(NamedTuple):
    """Who may be meant by the names in a filter or a query."""

    makers: matching.Names
    sellers: matching.Names


def where(conditions: records.Conditions, words: vocabulary.Vocabulary, names: Companies, values: Values) -> Clause:
    """The condition that a part must fulfil. Raises ValueError naming an unknown key or an unreadable
    value."""
    clauses = [_one(key, wanted, words, names, values) for key, wanted in conditions.filters]
    if conditions.in_stock_only:
        clauses.append(Clause("p.stocked"))
    if conditions.authorized_only:
        clauses.append(Clause("p.authorized > 0"))
    return joined(" AND ", clauses, "1")


def order(sort: str, descending: bool, words: vocabulary.Vocabulary) -> Clause | None:
    """The order to list by, parts without a value last; None for relevance (""). ValueError for an unknown
    key."""
    if not sort:
        return None
    if sort in _SORTS:
        key = Clause(_SORTS[sort])
    elif sort in words.attributes:
        key = _spec(sort)
    else:
        raise ValueError(f"sort: there is no key {sort!r}")
    direction = "DESC" if descending else "ASC"
    return Clause(f"{key.sql} {direction} NULLS LAST, p.offers DESC, p.id", key.params)


def among(column: str, ids: Iterable[str | int]) -> Clause:
    """The column holds one of `ids`."""
    return Clause(f"{column} IN (SELECT value FROM json_each(?))", (msgspec.json.encode(list(ids)).decode(),))


def makers(text: str, names: Companies) -> frozenset[str]:
    """Ids of the makers meant by a name or an id."""
    return frozenset({text}) if _is_id(text) else names.makers.find(text)


def sold_by(texts: Iterable[str], words: vocabulary.Vocabulary, names: Companies) -> Clause:
    """Some seller meant by one of `texts` (name or id) lists the part."""
    ids = {id_ for text in texts for id_ in sellers(text, names)}
    positions = [i for i, seller in enumerate(words.sellers) if seller.company.id in ids]
    return joined(" OR ", [Clause("instr(p.sellers, ?) > 0", (bytes([i]),)) for i in positions], NOTHING.sql)


def sellers(text: str, names: Companies) -> frozenset[str]:
    """Ids of the sellers meant by a name or an id."""
    return frozenset({text}) if _is_id(text) else names.sellers.find(text)


def joined(word: str, clauses: Sequence[Clause], none: str) -> Clause:
    """The clauses joined by " AND " or " OR "; `none` where there are none."""
    if not clauses:
        return Clause(none)
    sql = word.join(f"({clause.sql})" for clause in clauses)
    return Clause(sql, tuple(param for clause in clauses for param in clause.params))


def path(shortname: str) -> str:
    """Where the property stands in a part's line, as a JSON path."""
    return f'$.specs."{shortname}"'


def _one(key: str, wanted: Sequence[str], words: vocabulary.Vocabulary, names: Companies, values: Values) -> Clause:
    if key == "manufacturer_id":
        return among("p.maker", {id_ for text in wanted for id_ in makers(text, names)})
    if key == "distributor_id":
        return sold_by(wanted, words, names)
    if key == "category_id":
        return among("p.category", {id_ for text in wanted for id_ in _categories(text, words)})
    if key == "cad_models":
        return among("p.cad", [_cad(text) for text in wanted])
    if key in words.attributes:
        return _property(words.attributes[key], wanted, values)
    raise ValueError(f"filters: there is no key {key!r}")


def _property(attribute: records.Attribute, wanted: Sequence[str], values: Values) -> Clause:
    spec = _spec(attribute.shortname)
    numeric = attribute.value_type == "number"
    ranges = [hit for text in wanted if numeric and (hit := _RANGE.fullmatch(text))]
    clauses = [_between(attribute.shortname, hit[1], hit[2]) for hit in ranges]
    texts = [text for text in wanted if not (numeric and _RANGE.fullmatch(text))]
    if texts:
        held = [value for value in values(attribute.shortname) if any(_equal(attribute, value, text) for text in texts)]
        chosen = f"{spec.sql} IN (SELECT value FROM json_each(?))"
        clauses.append(Clause(chosen, (*spec.params, msgspec.json.encode(held).decode())))
    return joined(" OR ", clauses, NOTHING.sql)


def _between(shortname: str, low: str, high: str) -> Clause:
    try:
        bounds = [(sign, float(text)) for sign, text in ((">=", low), ("<=", high)) if text]
    except ValueError:
        raise ValueError(f"filters: {shortname} has no range '({low}__{high})', a bound is a number") from None
    spec = _spec(shortname)
    if not bounds:
        return Clause(f"{spec.sql} IS NOT NULL", spec.params)
    return joined(" AND ", [Clause(f"{spec.sql} {sign} ?", (*spec.params, bound)) for sign, bound in bounds], "1")


def _equal(attribute: records.Attribute, value: float | str, text: str) -> bool:
    """Whether a filter's text names the value: as displayed, one of several, or a bare number in SI base
    units."""
    wanted = _plain(text)
    if isinstance(value, str):
        return wanted == _plain(value) or wanted in map(_plain, value.split(","))
    try:
        return float(text) == value
    except ValueError:
        return wanted == _plain(units.shown(value, attribute.units_symbol).display)


def _plain(text: str) -> str:
    return "".join(text.split()).casefold()


def _spec(shortname: str) -> Clause:
    return Clause("json_extract(p.line, ?)", (path(shortname),))


def _categories(text: str, words: vocabulary.Vocabulary) -> tuple[str, ...]:
    if _is_id(text):
        return words.descendants(text) if text in words.categories else ()
    same = [one.id for one in words.categories.values() if matching.normalise(one.name) == matching.normalise(text)]
    return tuple(below for id_ in same for below in words.descendants(id_))


def _cad(text: str) -> int:
    if text not in CAD_STATES:
        raise ValueError(f"filters: cad_models takes {', '.join(CAD_STATES)}, not {text!r}")
    return CAD_STATES[text]


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal()
