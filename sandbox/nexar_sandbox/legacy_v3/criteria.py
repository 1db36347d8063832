"""Parser of filter[fields] and filter[queries] to criteria that all have to hold (contract v3-rest.md §1.1).

A filter query has Lucene's syntax `field:expression`. Supported is what v3 clients are known to have sent: values,
quoted values, inclusive ranges, alternatives within one field, and conjunctions of fields.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from luqum import tree
from luqum.exceptions import ParseError
from luqum.parser import parser

from nexar_sandbox.legacy_v3 import query_string

MAX_QUERY_LENGTH = 2_000
_RANGE = re.compile(r"\[(.+) TO (.+)\]")


class Criterion(NamedTuple):
    """A field has one of `values`, or a value from `low` to `high` (inclusive; None is open)."""

    field: str
    values: tuple[str, ...] = ()
    low: str | None = None
    high: str | None = None

    @property
    def is_range(self) -> bool:
        return not self.values

    @property
    def has_wildcard(self) -> bool:
        return any("*" in value for value in self.values)

    def holds(self, value: object) -> bool:
        if not self.is_range:
            return any(like(pattern)(text(value)) for pattern in self.values)
        try:
            # Numbers where all are numbers, else texts.
            low, high = (None if end is None else float(end) for end in (self.low, self.high))
            number = float(str(value))
        except ValueError:
            return (self.low or "") <= text(value) and (self.high is None or text(value) <= self.high)
        return (low is None or low <= number) and (high is None or number <= high)


class _UnsupportedError(Exception):
    """An expression that v3 is not known to have supported."""


def text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def like(pattern: str) -> Callable[[str], bool]:
    """Matcher of a pattern with the wildcard *. Atomic groups prevent backtracking."""
    if "*" not in pattern:
        return pattern.__eq__
    first, *middle, last = map(re.escape, pattern.split("*"))
    pieces = "".join(f"(?>.*?{piece})" for piece in middle if piece)
    regex = re.compile(f"{first}{pieces}.*{last}", re.DOTALL)
    return lambda text_: regex.fullmatch(text_) is not None


def of_field(field: str, values: list[str]) -> Criterion:
    """Criterion of filter[fields], whose value may be a range."""
    range_match = _RANGE.fullmatch(values[0]) if len(values) == 1 else None
    return (
        Criterion(field, (), _end(range_match[1]), _end(range_match[2]))
        if range_match
        else Criterion(field, tuple(values))
    )


def of_query(query: str) -> list[Criterion]:
    if len(query) > MAX_QUERY_LENGTH:
        raise query_string.bad_request(f"filter query is longer than {MAX_QUERY_LENGTH} characters")
    try:
        return list(_read(parser.parse(query)))
    except (ParseError, ValueError, ArithmeticError, RecursionError):
        raise query_string.bad_request(f"filter query cannot be parsed: {query[:80]}") from None
    except _UnsupportedError as strange:
        raise query_string.bad_request(f"filter query is not supported ({strange}): {query[:80]}") from None


def _read(node: tree.Item) -> Iterator[Criterion]:
    if isinstance(node, tree.SearchField):
        yield _one(node.name, node.expr)
    elif isinstance(node, tree.Group | tree.Plus):
        yield from _read(node.children[0])
    elif isinstance(node, tree.AndOperation):
        for child in node.children:
            yield from _read(child)
    elif isinstance(node, tree.OrOperation):
        yield _either([criterion for child in node.children for criterion in _read(child)], len(node.children))
    elif isinstance(node, tree.UnknownOperation):
        yield from _beside(node.children)
    else:
        raise _UnsupportedError(type(node).__name__)


def _beside(nodes: list[tree.Item]) -> Iterator[Criterion]:
    """Several fields, joined by nothing, a lower-case and, or an or."""
    between = {str(node).strip().lower() for node in nodes if isinstance(node, tree.Word)}
    criteria = [each for node in nodes if not isinstance(node, tree.Word) for each in _read(node)]
    if not criteria or not between <= {"or", "and"} or len(between) > 1:
        raise _UnsupportedError("words without a field")
    yield from [_either(criteria, len(criteria))] if between == {"or"} else criteria


def _either(criteria: list[Criterion], alternatives: int) -> Criterion:
    if (
        len({each.field for each in criteria}) > 1
        or len(criteria) != alternatives
        or any(each.is_range for each in criteria)
    ):
        raise _UnsupportedError("alternatives are of one field and no ranges")
    return Criterion(criteria[0].field, tuple(value for each in criteria for value in each.values))


def _one(field: str, node: tree.Item) -> Criterion:
    if isinstance(node, tree.Range):
        if not (node.include_low and node.include_high):
            raise _UnsupportedError("a range without its ends")
        return Criterion(field, (), _end(_word(node.low)), _end(_word(node.high)))
    if isinstance(node, tree.FieldGroup | tree.Group):
        return _one(field, node.children[0])
    if isinstance(node, tree.OrOperation):
        return Criterion(field, tuple(map(_word, node.children)))
    if isinstance(node, tree.UnknownOperation):
        return Criterion(field, _alternatives([_word(child) for child in node.children]))
    return Criterion(field, (_word(node),))


def _alternatives(words: list[str]) -> tuple[str, ...]:
    """Alternatives such as `X5R or X7R`, else one value of several words."""
    between = {word.lower() for word in words[1::2]}
    if "and" in between:
        raise _UnsupportedError("and within a field")
    return tuple(words[::2]) if between == {"or"} and len(words) % 2 else (" ".join(words),)


def _word(node: tree.Item) -> str:
    if isinstance(node, tree.Phrase):
        return _unescaped(node.value[1:-1])
    if isinstance(node, tree.Word):
        return _unescaped(node.value)
    # Lucene reads the sign of a negative number as NOT.
    if isinstance(node, tree.Prohibit) and isinstance(node.children[0], tree.Word):
        word = node.children[0].value
        if re.fullmatch(r"[0-9.]+([eE][-+]?[0-9]+)?", word):
            return f"-{word}"
    raise _UnsupportedError(type(node).__name__)


def _unescaped(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word)


def _end(word: str) -> str | None:
    return None if word == "*" else word
