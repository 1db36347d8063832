"""Filters of a v3 search: its Lucene-like queries, `field:expr`, parsed to conditions that all must hold (contract
v3-rest.md §1.1), and v3's wildcard: `*` matches any text, here and in part numbers (§4).

Supported: values, quoted values, inclusive ranges, groups and OR within one field, AND between fields. Everything else
is refused with the reason, so that no filter is silently dropped.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from luqum import tree
from luqum.exceptions import ParseError
from luqum.parser import parser

from proxy import errors
from proxy.model import SearchRequest
from proxy.v3.encoding import Bound

ANY = "*"  # the wildcard
OPEN = "*"  # an open end of a range
NUMBER = re.compile(r"\d+(\.\d+)?([eE][-+]?\d+)?")
UNKNOWN = {"Fuzzy": "fuzziness (~)", "Proximity": "proximity (~)", "Boost": "a boost (^)", "Regex": "a pattern"}


class Condition(NamedTuple):
    """Condition on one field: accepted values, or an inclusive range from `low` to `high`; None is an open end."""

    field: str
    values: tuple[str, ...] = ()
    low: str | None = None
    high: str | None = None

    @property
    def is_range(self) -> bool:
        return not self.values


class FilterCondition(NamedTuple):
    """Condition, and what messages to the client have before one of its values: the parameter that it was sent in."""

    prefix: str
    condition: Condition


class RequestFilters(NamedTuple):
    """Filters of a request, and the conditions of each of its facet queries by the query's text."""

    filter_conditions: list[FilterCondition]
    facet_queries: dict[str, list[Condition]]

    @property
    def conditions(self) -> list[Condition]:
        """All conditions, of filters and of facet queries."""
        return [
            *(each.condition for each in self.filter_conditions),
            *(each for conditions in self.facet_queries.values() for each in conditions),
        ]

    @property
    def patterns(self) -> list[str]:
        """Values with a wildcard, except `*` alone, which matches any value and is compared with nothing."""
        values = (value for each in self.conditions for value in each.values if ANY in value)
        return [value for value in values if value != ANY]


class _CannotError(Exception):
    """A part of a query is not supported; the message gives the reason."""


def matcher(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern with wildcards to a test of whole texts. It takes linear time for any pattern, unlike a regular
    expression: each piece is searched for once, from the left."""
    first, *rest = pattern.split(ANY)
    if not rest:
        return lambda text: text == pattern
    *middle, last = rest
    pieces = [piece for piece in middle if piece]

    def matches(text: str) -> bool:
        if not (text.startswith(first) and text.endswith(last)):
            return False
        at, end = len(first), len(text) - len(last)
        for piece in pieces:
            # The leftmost place leaves the most text for the pieces after it: no other place need be tried.
            at = text.find(piece, at, end)
            if at < 0:
                return False
            at += len(piece)
        return at <= end

    return matches


def parse_filters(request: SearchRequest) -> Iterator[RequestFilters]:
    """Yield the filters of a request after each query, so that others can work meanwhile; the last are all of them.
    Raises BadRequest for a query that cannot be parsed, and for too many conditions."""
    filters = RequestFilters([], {})
    for name, values in request.filters:
        is_range = len(values) == 1 and values[0].startswith("[") and values[0].endswith("]") and " TO " in values[0]
        # Exact values, or a range as in a filter query, because clients send `[1 TO *]` here, too.
        found = conditions(f"{name}:{values[0]}") if is_range else [Condition(name, values)]
        filters.filter_conditions.extend(FilterCondition(f"filter[fields][{name}]=", each) for each in found)
        yield filters
    for text in request.filter_queries:
        found = conditions(text)
        filters.filter_conditions.extend(FilterCondition(f"filter[queries]={each.field}:", each) for each in found)
        yield filters
    Bound.CONDITIONS.check(len(filters.filter_conditions))
    for text in request.facet_queries:
        filters.facet_queries[text] = conditions(text)
        Bound.CONDITIONS.check(len(filters.facet_queries[text]), "facet[queries][]")
        yield filters
    Bound.PATTERNS.check(len(filters.patterns))
    yield filters


def order(text: str) -> tuple[str, str]:
    """Parse one `<field> asc|desc` of a sortby; asc without a direction. Raises BadRequest."""
    name, _, direction = text.strip().partition(" ")
    direction = direction.strip().lower() or "asc"
    if direction not in {"asc", "desc"}:
        raise errors.BadRequest(f"sortby must be like 'name asc', not {text.strip()[:40]!r}")
    return name, direction


def conditions(text: str) -> list[Condition]:
    """Parse one filter query. Raises BadRequest, naming the query and the reason."""
    Bound.QUERY_LENGTH.check(len(text), f"filter query {text[:40]!r}…")
    try:
        return list(_all(parser.parse(text)))
    # luqum raises the last two for numbers after ~ and ^.
    except (ParseError, RecursionError, ValueError, ArithmeticError):
        raise errors.BadRequest(f"filter query {text[:80]!r} is not of the form field:value") from None
    except _CannotError as reason:
        raise errors.BadRequest(f"filter query {text[:80]!r} cannot be translated: {reason}") from None


def _all(node: tree.Item) -> Iterator[Condition]:
    """Yield the conditions of a query, which must all hold."""
    match node:
        case tree.SearchField():
            yield _condition(node.name, node.expr)
        case tree.Group() | tree.Plus() | tree.AndOperation():
            for child in node.children:
                yield from _all(child)
        case tree.OrOperation():
            yield _any(node.children)
        case tree.UnknownOperation():  # several side by side
            words = [str(child).strip().lower() for child in node.children]
            parts = [child for child, word in zip(node.children, words, strict=True) if word not in {"or", "and"}]
            if not parts:
                text = str(node).strip()[:40]
                raise _CannotError(f"{text!r} belongs to no field; put a value of several words in quotes")
            # v3 clients write a lower-case `or` (contract v3-rest.md §1.1), which luqum parses as a word.
            if "or" not in words:
                yield from (condition for child in parts for condition in _all(child))
            elif len(words) % 2 and set(words[1::2]) == {"or"}:
                yield _any(node.children[::2])
            else:
                raise _CannotError("or and and cannot be mixed")
        case tree.Not() | tree.Prohibit():
            raise _CannotError("nothing can be excluded")
        case _:
            raise _CannotError(f"{str(node)[:40]!r} belongs to no field; put a value of several words in quotes")


def _any(nodes: Iterable[tree.Item]) -> Condition:
    alternatives: list[Condition] = []
    for node in nodes:
        first, *further = _all(node)
        if further:
            raise _CannotError("AND cannot stand inside OR")
        alternatives.append(first)
    if len({condition.field for condition in alternatives}) > 1:
        raise _CannotError("OR works within one field only")
    if any(condition.is_range for condition in alternatives):
        raise _CannotError("a range cannot be an alternative")
    return Condition(alternatives[0].field, tuple(value for each in alternatives for value in each.values))


def _condition(field: str, node: tree.Item) -> Condition:
    match node:
        case tree.Range():
            if not (node.include_low and node.include_high):
                raise _CannotError("a range has both ends in: [1 TO 5]")
            low, high = (None if end == OPEN else end for end in map(_value, (node.low, node.high)))
            return Condition(field, (), low, high)
        case tree.FieldGroup() | tree.Group():
            return _condition(field, node.children[0])
        case tree.OrOperation():
            return Condition(field, tuple(map(_value, node.children)))
        case tree.UnknownOperation():
            words = [_value(child) for child in node.children]
            between = [word.lower() for word in words[1::2]]
            if "and" in between:
                raise _CannotError("a field has one value at a time")
            # Alternatives if a lower-case `or` is between each two, else one value of several words.
            are_alternatives = between and len(words) % 2 and all(word == "or" for word in between)
            return Condition(field, tuple(words[::2]) if are_alternatives else (" ".join(words),))
        case tree.AndOperation():
            raise _CannotError("a field has one value at a time")
        case _:
            return Condition(field, (_value(node),))


def _value(node: tree.Item) -> str:
    match node:
        case tree.Phrase() | tree.Word():
            is_quoted = isinstance(node, tree.Phrase)
            # A single-character wildcard, which the upstream lacks: as a plain character it would match nothing.
            if not is_quoted and re.search(r"(?<!\\)\?", node.value):
                raise _CannotError("? is not understood; put it in quotes where it is meant")
            # Without Lucene's escapes: `C0G\/NP0` is `C0G/NP0`.
            return re.sub(r"\\(.)", r"\1", node.value[1:-1] if is_quoted else node.value)
        case tree.Prohibit() if isinstance(node.children[0], tree.Word) and NUMBER.fullmatch(node.children[0].value):
            return f"-{node.children[0].value}"  # a minus before a number is its sign
        case tree.Not() | tree.Prohibit():
            raise _CannotError("nothing can be excluded")
        case tree.Group() | tree.FieldGroup():
            raise _CannotError("groups cannot be nested")
        case _:
            kind = type(node).__name__
            raise _CannotError(f"{UNKNOWN.get(kind, kind)} is not understood")
