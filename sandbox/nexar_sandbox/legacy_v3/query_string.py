"""Parser of v3 query strings (contract v3-rest.md §2, §6): four notations of arrays, seven of booleans; and errors with
the status and message that clients see (§5)."""

import re
from urllib.parse import parse_qsl

_BRACKETS = re.compile(r"(.+?)\[\d*\]", re.DOTALL)
_YES, _NO = ("true", "1", ""), ("false", "0")


class LegacyError(Exception):
    """A ClientErrorResponse or, from 500 on, a ServerErrorResponse."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def bad_request(message: str) -> LegacyError:
    return LegacyError(400, message)


class QueryString:
    """The parameters of one request target. An array's name has no brackets at its end."""

    def __init__(self, target: str) -> None:
        query = target.partition("?")[2].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        self._pairs = [(_plain(name), value) for name, value in parse_qsl(query, keep_blank_values=True)]

    def all(self, name: str) -> list[str]:
        """Every value of an array that is not empty, in the order sent."""
        return [value for key, value in self._pairs if key == name and value]

    def one(self, name: str) -> str | None:
        """Return the last value; None if there is none."""
        return next((value for key, value in reversed(self._pairs) if key == name), None)

    def like(self, pattern: re.Pattern[str]) -> list[tuple[re.Match[str], str]]:
        """Every parameter whose whole name matches the pattern, in the order sent."""
        return [(match, value) for key, value in self._pairs if (match := pattern.fullmatch(key))]

    def flag(self, name: str) -> bool:
        """Return a boolean; absent is false, a bare name is true."""
        value = self.one(name)
        if value is None or value.lower() in _NO:
            return False
        if value.lower() not in _YES:
            raise bad_request(f"{name} is not a boolean: {value[:40]}")
        return True

    def number(self, name: str, default: int, most: int) -> int:
        """Return a whole number from 0 to `most`."""
        value = self.one(name) or str(default)
        if not re.fullmatch("[0-9]{1,9}", value) or int(value) > most:
            raise bad_request(f"{name} is not an integer from 0 to {most}: {value[:40]}")
        return int(value)


def _plain(name: str) -> str:
    match = _BRACKETS.fullmatch(name)
    return match[1] if match else name
