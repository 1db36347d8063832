"""v3's filters and sort orders as variables of a search (contract graphql.md §2.4), by the tables of mappings/.

What the upstream cannot express is refused with a message that lists what it can; no filter is silently dropped. The
key of a spec field can mean several attributes, or one attribute of some parts only: filters are rewritten so that each
names one attribute.
"""

import math
import re
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple

from proxy import errors
from proxy.mapping.rules import LISTS, SearchField, Tables, UnlistedError
from proxy.mapping.specs import SearchedField
from proxy.planning import lucene
from proxy.planning.lucene import OPEN, Condition
from proxy.v3.encoding import Bound

SPEC = re.compile(r"specs\.([^.]+)\.(?:value|min_value|max_value)")
SINGLE_VALUED = frozenset(  # a part has one
    {"brand.name", "brand.uid", "manufacturer.name", "manufacturer.displayname", "manufacturer.uid"}
)
ID = re.compile(r"0|[1-9][0-9]*")  # of the upstream, which treats any other text as a name


class UnknownSpec(errors.BadRequest):
    """A spec that the tables do not have; the upstream may have it nevertheless."""


class SearchFilters(NamedTuple):
    """Variables of the filters of a search, and whether it is known that no part matches, so that no request is needed.
    An absent variable is an absent argument."""

    variables: dict[str, Any]
    finds_nothing: bool


def field_of(tables: Tables, name: str) -> SearchedField:
    """Return a field that a search names: of a spec without attributes behind it only with the key."""
    if known := tables.specs.fields.get(name):
        return known
    match = SPEC.fullmatch(name)
    return SearchedField(name, match[1] if match else None)


def field_support(tables: Tables, field: str) -> SearchField | None:
    """Return the upstream's support for a field; None if it has nothing similar. Raises UnknownSpec."""
    known = field_of(tables, field)
    key, source = known.key, known.source
    if key is None:
        return tables.search.get(field)
    if tables.specs.sources.get(key) is None:
        raise UnknownSpec(f"the service knows no spec {key[:60]!r}; keys are those of a part's specs, like resistance")
    if source is None:  # an end of a spec that is no range: v3's, and the service has nothing for it
        return SearchField()
    return SearchField(filter=source.value, facet="specAggs", sort=source.low or source.value)


def translate(tables: Tables, conditions: list[Condition]) -> SearchFilters:
    """Translate all conditions together. Raises BadRequest for the first that cannot be expressed, and UnlistedError
    if a name must be looked up in an upstream list: upstream filters match names loosely, v3's matched them exactly."""
    filters: dict[str, list[str]] = {}
    in_stock_only = False
    rewritten = expanded(tables, [each for each in conditions if not is_always_true(tables, each)])
    # The map has one entry for each field, so ranges are merged first and values intersected below.
    for condition in _merged_ranges(rewritten):
        field = field_support(tables, condition.field)
        # A flag of the search, no filter of the map, and no quantity (contract graphql.md §2.4).
        if field is not None and field.stock:
            if (condition.low, condition.high) not in {("1", None), ("0.0", None), ("1.0", None)} or condition.values:
                raise errors.BadRequest(
                    f"{condition.field} can only be requested as [1 TO *]: the service knows in stock or not"
                )
            in_stock_only = True
            continue
        if field is None or field.filter is None:
            raise unsupported_field(tables, condition.field, "filter")
        values = _values(tables, field, condition)
        first = filters.setdefault(field.filter, values)
        if set(values) <= set(first):
            filters[field.filter] = values
        elif not set(first) <= set(values):
            # One of several values of a part may pass the first filter, another the second: upstream cannot say that.
            common, spec = [value for value in first if value in values], field_of(tables, condition.field).source
            entry = tables.specs.names.get(spec.value or "") if spec else None
            if condition.field not in SINGLE_VALUED and not (common and spec and not (entry and entry.many)):
                raise errors.BadRequest(
                    f"{condition.field}: the service cannot ask for two filters on it at once; give first of them"
                )
            filters[field.filter] = common
    variables: dict[str, Any] = {"filters": filters} if filters else {}
    variables |= {"inStockOnly": True} if in_stock_only else {}
    return SearchFilters(variables, finds_nothing=not all(filters.values()))


def expanded(tables: Tables, conditions: list[Condition]) -> list[Condition]:
    """Rewrite conditions so that each names one attribute.

    A range such as operating_temperature matches if it overlaps the requested values, as range fields do in search
    engines. Raises BadRequest if upstream cannot filter by the field.
    """
    rewritten: list[Condition] = []
    for condition in conditions:
        low, high, field = condition.low, condition.high, field_of(tables, condition.field)
        spec = field.source
        if spec is None:
            rewritten.append(condition)
        elif spec.low is None or spec.high is None:
            entry = tables.specs.names.get(spec.value or "")
            own = condition._replace(field=field.name)
            if entry and entry.plus_minus:  # upstream has tolerances as plain numbers
                low, high = (None if end is None else _percentage(end) for end in (low, high))
                own = Condition(field.name, tuple(dict.fromkeys(map(_percentage, condition.values))), low, high)
            rewritten.append(own)
        # A filter on either the value or the ends would need an OR of filters, which the upstream lacks.
        elif spec.value is not None:
            named = ", ".join(field_of(tables, f"specs.{name}.value").name for name in field.shortnames)
            raise errors.BadRequest(f"{condition.field}: the service has it as several specs; filter by one of {named}")
        else:
            if not condition.is_range:
                if len(condition.values) > 1 or OPEN in condition.values[0]:
                    raise errors.BadRequest(
                        f"{condition.field} is a range: give one number, or a range like [-40 TO 85]"
                    )
                # Overlap with a single number: the range contains it.
                low = high = condition.values[0]
            # Ranges overlap if the part's upper end is above the requested low, and its lower end below the high.
            floor = Condition(field_of(tables, f"specs.{spec.high}.value").name, (), low, None)
            ceiling = Condition(field_of(tables, f"specs.{spec.low}.value").name, (), None, high)
            rewritten += [each for each, end in ((floor, low), (ceiling, high)) if end is not None] or [floor]
    # After the rewriting: a filter on the quantity itself makes the added condition unnecessary.
    for condition in conditions:
        rewritten = limited(tables, rewritten, condition.field)
    return rewritten


def limited(tables: Tables, conditions: list[Condition], field: str) -> list[Condition]:
    """Add the condition that restricts a field to the parts that can have it; return the same list if there is none. A
    tolerance is a resistance_tolerance only for parts with a resistance. Upstream cannot filter by existence, but by a
    value of 0 or more."""
    spec = field_of(tables, field).source
    beside = spec.beside if spec else None
    if beside is None or any(beside in field_of(tables, each.field).shortnames for each in conditions):
        return conditions
    return [*conditions, Condition(field_of(tables, f"specs.{beside}.value").name, (), "0", None)]


def sort_variables(tables: Tables, sortby: str) -> dict[str, str]:
    """Return `sort` and `sortDir` for a `sortby` such as `avg_price asc`; nothing for the upstream's default."""
    name, direction = lucene.order(sortby)
    if (name, direction) == ("score", "desc"):
        return {}
    field = field_support(tables, name)
    if field is None or field.sort is None:
        raise unsupported_field(tables, name, "sort")
    # A range is sorted by its lower end ascending, by its upper end descending.
    spec = field_of(tables, name).source
    return {"sort": (spec and direction == "desc" and spec.high) or field.sort, "sortDir": direction}


def is_always_true(tables: Tables, condition: Condition) -> bool:
    """Return whether a condition needs no filter: any value of a field that every part has, such as `[* TO *]`."""
    field = tables.search.get(condition.field)
    # `*` alone among the values accepts anything, whatever the other values say.
    anything = (condition.low, condition.high) == (None, None) if condition.is_range else "*" in condition.values
    return anything and field is not None and field.every


def _percentage(text: str) -> str:
    """Return 5 for ±5%, 5% and 5.0; any other text unchanged."""
    bare = text.strip().removeprefix("±").removesuffix("%").strip()
    try:
        number = float(bare)
    except ValueError:
        return text
    return f"{number:g}" if math.isfinite(number) else text


def _values(tables: Tables, field: SearchField, condition: Condition) -> list[str]:
    """Return the values of a filter. That of a range is `(low__high)`, with either end optional (contract graphql.md
    §2.4); an empty range has none."""
    if condition.is_range:
        if field_of(tables, condition.field).key is None:
            raise errors.BadRequest(f"{condition.field} has no ranges; the service has them for specs only")
        low, high = (None if end is None else _number(condition, end) for end in (condition.low, condition.high))
        if low is None and high is None:
            raise errors.BadRequest(
                f"{condition.field}: a range needs an end; the service cannot ask if a value exists"
            )
        is_empty = low is not None and high is not None and low > high
        return [] if is_empty else [f"({'' if low is None else low}__{'' if high is None else high})"]
    patterns = [value for value in condition.values if lucene.ANY in value]
    # Names are matched here: the upstream has no wildcards.
    if patterns and (field.name is None or not all(value.strip(lucene.ANY) for value in patterns)):
        raise errors.BadRequest(
            f"{condition.field}: the service has no wildcards in filters but those of names, and cannot ask if a value "
            "exists"
        )
    if field.uid or field.name:
        return list(dict.fromkeys(id_ for value in condition.values for id_ in ids(tables, field, value)))
    if field.id:
        # Any other text the upstream would look up as a name, and match loosely.
        return [value for value in condition.values if ID.fullmatch(value)]
    for value in condition.values:
        if value.startswith("(") and value.endswith(")") and "__" in value:  # upstream would parse it as a range
            raise errors.BadRequest(f"{condition.field}: {value[:40]!r} is not a value; a range is written as [1 TO 5]")
    return list(condition.values)


def _number(condition: Condition, end: str) -> float:
    try:
        number = float(end)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise errors.BadRequest(f"{condition.field}: a range goes from number to number, not {end[:40]!r}")
    return number


def ids(tables: Tables, field: SearchField, value: str) -> Sequence[str]:
    """Return the upstream ids that a uid or a name refers to, with `*` in names as a wildcard: those of an entry of the
    tables by its first name that the upstream's list has, else by any, whatever the case of letters; those of a name
    that the tables do not have by exactly this name. Raises UnlistedError if the list is needed."""
    kind, is_pattern = field.uid or field.name or "", field.uid is None and lucene.ANY in value
    known = tables.uids[kind]
    entry = known.target(value) if field.uid else known.named.get(value)
    if entry is None and field.uid:
        return ()
    if entry is not None and entry.id is not None and not is_pattern:  # a list may not have been fetched
        return (entry.id,)
    list_name = LISTS.get(kind, kind)
    if list_name not in tables.listed:
        raise UnlistedError(list_name)
    listed = tables.listed[list_name]
    if is_pattern:
        matching = [*filter(lucene.matcher(value), listed)]
    elif entry is None:
        return listed.get(value, ())
    elif exact := next(filter(None, map(listed.get, entry.names)), None):
        return exact
    else:
        folded = set(map(str.casefold, entry.names))
        matching = [name for name in listed if name.casefold() in folded]
    found = tuple(dict.fromkeys(chain.from_iterable(map(listed.__getitem__, matching))))
    if is_pattern:
        Bound.MATCHES.check(len(found), value)
    return found


def _merged_ranges(conditions: list[Condition]) -> list[Condition]:
    """Return the conditions with one range for each field, the intersection of all its ranges; if a field also has
    values, those within the range."""
    ranges: dict[str, Condition] = {}
    for each in conditions:
        if each.is_range and each is not (first := ranges.setdefault(each.field, each)):
            ends = (first.low, each.low), (first.high, each.high)
            lows, highs = ([end for end in pair if end is not None] for pair in ends)
            number = partial(_number, first)
            low, high = max(lows, key=number, default=None), min(highs, key=number, default=None)
            ranges[each.field] = Condition(each.field, (), low, high)
    merged = []
    for each in conditions:
        limits = ranges.get(each.field)
        if limits is None:
            merged.append(each)
        elif not each.is_range:
            floor = -math.inf if limits.low is None else _number(limits, limits.low)
            ceiling = math.inf if limits.high is None else _number(limits, limits.high)
            inside = tuple(value for value in each.values if floor <= _number(each, value) <= ceiling)
            # A condition without values is a range: no number is in this one.
            merged.append(each._replace(values=inside) if inside else Condition(each.field, (), "1", "0"))
    fields = {each.field for each in merged}
    return [*merged, *(each for each in ranges.values() if each.field not in fields)]


def unsupported_field(tables: Tables, field: str, use: Literal["filter", "facet", "sort"]) -> errors.BadRequest:
    """Return the error for a field that upstream cannot filter, count or sort by: it lists those that it can."""
    entry = tables.search.get(field)
    instead = f"; {entry.instead}" if entry and entry.instead and use != "sort" else ""
    refused = f"{'count' if use == 'facet' else use} by {field[:60]!r}"
    error = errors.BadRequest(f"the service cannot {refused}; it can by {supported_fields(tables, use)}{instead}")
    error.refused = refused
    return error


def supported_fields(tables: Tables, use: Literal["filter", "facet", "sort"]) -> str:
    """Return the names of the fields that upstream can filter, count or sort by, comma-separated."""
    fields = tables.search.items()
    names = [name for name, each in fields if getattr(each, use) or (use == "filter" and (each.stock or each.number))]
    return f"{', '.join([*(['score desc'] if use == 'sort' else []), *names])} and specs.<key>.value"
