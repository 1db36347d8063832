"""Equality of JSON values to the last digit, and of texts that spell the same number.

Python's == treats True and 1, and 1 and 1.0, as equal; clients in other languages do not. `same` does not depend on
field names: callers decide which texts are names.
"""

import re
from collections.abc import Hashable
from decimal import Decimal
from typing import Any


def same(baseline: Any, candidate: Any) -> bool:
    """Compare two JSON values exactly, including number types. The order of an object's keys is ignored."""
    return bool(baseline == candidate) and _are_exact(baseline, candidate)


def _are_exact(baseline: Any, candidate: Any) -> bool:
    """Return whether values that Python considers equal have the same types and digits."""
    kind = type(baseline)
    if kind is not type(candidate):
        return False
    if kind is dict:
        return all(_are_exact(value, candidate[key]) for key, value in baseline.items())
    if kind is list:
        return all(map(_are_exact, baseline, candidate))
    return kind is not Decimal or str(baseline) == str(candidate)


def canonical(value: Any) -> str:
    """Return a canonical form: equal exactly for values that are `same`."""
    return repr(_sorted(value))


def _sorted(value: Any) -> Any:
    if type(value) is dict:
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if type(value) is list else value


# JSON's number syntax without exponents: 0402 is a package size, and 1e10 may be a uid.
NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,60})(?:\.\d{1,60})?", re.ASCII)


def spelling_key(text: str) -> Hashable:
    """Return a key that is equal for all spellings of a number; other texts are their own key."""
    return Decimal(text) if NUMBER.fullmatch(text) else text
