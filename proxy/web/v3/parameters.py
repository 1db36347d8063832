"""Query strings as v3 clients really send them (contract v3-rest.md §2, §6) into frozen values.

Targets arrive raw or percent-encoded, arrays in four spellings, booleans in seven; unknown parameters are ignored.
Parameters of one endpoint are read in its own module.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote, unquote_to_bytes

from proxy import errors, model
from proxy.mapping.loader import Rulebook

TRUE = {"true", "1", ""}  # a bare `&exact_only` has no value and means true
FALSE = {"false", "0"}
CALLBACK_MAX = 128
NOTHING = frozenset({("",)})  # show[] with no known name: a view of no field
CALLBACK = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*|\[\d+\])*", re.ASCII)
SLICE = re.compile(r"\[?(-?\d{1,9})?:(-?\d{1,9})?\]?", re.ASCII)


class Style(NamedTuple):
    """How a reply is written, whatever it says."""

    pretty_print: bool = False
    callback: str | None = None
    suppress_status_codes: bool = False


class Shape(NamedTuple):
    """What a reply shows: the view that everything is compiled for, and how far its lists are cut."""

    view: model.View
    cuts: dict[model.Path, slice]


class Parameters:
    """The parameters of one request: names without their brackets, values in the order sent."""

    def __init__(self, target: str) -> None:
        """Of a request target as it came over the wire, absolute-form included."""
        query = target.partition("?")[2]
        if not query.isascii():
            query = query.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        self._values: dict[str, list[str]] = {}
        for pair in query.split("&"):
            if pair:
                name, _, value = pair.partition("=")
                self._values.setdefault(_bare(_text(name)), []).append(_text(value))

    def text(self, name: str) -> str | None:
        """The last value given, as PHP and Python servers alike read it; None where there is none."""
        values = self._values.get(name)
        return values[-1] if values else None

    def texts(self, name: str) -> list[str]:
        """All values of an array: `name[]=a`, `name[0]=a` and `name=a` are the same."""
        return self._values.get(name, [])

    def names(self, start: str) -> list[str]:
        """The names that begin like this, such as `facet[`, in the order sent."""
        return [name for name in self._values if name.startswith(start)]

    def whole(self, name: str, default: int, maximum: int) -> int:
        """A whole number from 0; absent or empty is the default. Raises BadRequest beyond its range."""
        value = self.text(name)
        if not value:
            return default
        if not (value.isascii() and value.isdigit() and len(value) < 10 and int(value) <= maximum):
            raise errors.BadRequest(f"{name} must be a whole number between 0 and {maximum}, not {value[:40]!r}")
        return int(value)

    def flag(self, name: str) -> bool:
        """A boolean; absent is false. Raises BadRequest for a value that is none."""
        value = self.text(name)
        if value is None or value.lower() in FALSE:
            return False
        if value.lower() in TRUE:
            return True
        raise errors.BadRequest(f"{name} must be true or false, not {value[:40]!r}")

    def style(self) -> Style:
        """pretty_print, callback and suppress_status_codes."""
        callback = self.text("callback") or None
        if callback and (len(callback) > CALLBACK_MAX or not CALLBACK.fullmatch(callback)):
            raise errors.BadRequest("callback must be the name of a JavaScript function, like handle or app.handle")
        return Style(self.flag("pretty_print"), callback, self.flag("suppress_status_codes"))

    def shape(self, features: frozenset[str], book: Rulebook, name: str) -> Shape:
        """include[], show[], hide[] and slice[] for an object. Names it does not have are ignored: views are kept,
        and what clients make up must not be what they are kept by."""
        include = frozenset(self.texts("include")) & book.includable(name)
        if not ("show" in self._values or "hide" in self._values or self._slices()):
            return Shape(model.View(include, features=features), {})
        cuts = {path: cut for path, cut in map(_slice, self._slices()) if book.knows(name, path)}
        emptied = frozenset(path for path, cut in cuts.items() if cut.start is None and cut.stop == 0)
        show = frozenset(filter(None, self.texts("show")))
        view = model.View(
            include,
            _paths(show, book, name) or (NOTHING if show else frozenset()),
            _paths(self.texts("hide"), book, name),
            frozenset(cuts) - emptied,
            emptied,
            features,
        )
        return Shape(view, cuts)

    def _slices(self) -> list[tuple[str, str]]:
        return [(name, values[-1]) for name, values in self._values.items() if name.startswith("slice[")]


def _text(encoded: str) -> str:
    """As a form is decoded (WHATWG URL §5.1). Nearly all is ASCII, and need not be searched for what is not."""
    if "+" in encoded:
        encoded = encoded.replace("+", " ")
    if "%" not in encoded:
        return encoded
    return unquote_to_bytes(encoded).decode("utf-8", "replace") if encoded.isascii() else unquote(encoded)


def _bare(name: str) -> str:
    """`include[]`, `include[0]` and `include` are one name; `filter[fields][x][]` loses only its last brackets."""
    if name.endswith("]"):
        head, _, index = name[:-1].rpartition("[")
        if not index or index.isdigit():
            return head
    return name


def _paths(texts: Iterable[str], book: Rulebook, name: str) -> frozenset[model.Path]:
    """The dotted paths among these that lead to a field."""
    paths = (tuple(text.split(".")) for text in texts)
    return frozenset(path for path in paths if book.knows(name, path))


def _slice(given: tuple[str, str]) -> tuple[model.Path, slice]:
    """`slice[offers]=[0:1]` and `slice[offers]=0:1` (contract v3-rest.md §2); an empty range is written as `[:0]`."""
    name, value = given
    found = SLICE.fullmatch(value.strip())
    if not found:
        raise errors.BadRequest(f"{name[:60]} must be a range like [0:5], not {value[:40]!r}")
    start, stop = (int(number) if number else None for number in found.groups())
    if stop is not None and 0 <= stop <= (start or 0):
        start, stop = None, 0
    return tuple(name[6:-1].split(".")), slice(start, stop)
