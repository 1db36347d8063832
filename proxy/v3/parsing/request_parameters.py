"""Parameters that all v3 endpoints share: the format of a response, and its projection.

Parameters of one endpoint are parsed where its request is.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from proxy import errors, model
from proxy.mapping.loader import Mappings
from proxy.v3 import bounds, parameters

NOTHING = frozenset({("",)})  # show[] with unknown names only: no field is shown
CALLBACK = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*|\[\d+\])*", re.ASCII)
SLICE = re.compile(r"\[?(-?\d{1,9})?:(-?\d{1,9})?\]?", re.ASCII)


class ResponseFormat(NamedTuple):
    """Format of a response: pretty-printed, JSONP, and whether errors have status 200."""

    pretty_print: bool = False
    callback: str | None = None
    suppress_status_codes: bool = False


class RequestProjection(NamedTuple):
    """Projection of a request: the fields that a mapping is compiled for, and the slices of its lists."""

    projection: model.Projection
    slices: dict[model.Path, slice]


class RequestParameters(parameters.Parameters):
    def response_format(self) -> ResponseFormat:
        """Parse pretty_print, callback and suppress_status_codes."""
        callback = self.text("callback") or None
        if callback:
            bounds.CALLBACK.check(len(callback))
        if callback and not CALLBACK.fullmatch(callback):
            raise errors.BadRequest("callback must be the name of a JavaScript function, like handle or app.handle")
        return ResponseFormat(self.flag("pretty_print"), callback, self.flag("suppress_status_codes"))

    def projection(self, features: frozenset[str], mappings: Mappings, name: str) -> RequestProjection:
        """include[], show[], hide[] and slice[] for object `name`. Unknown fields are dropped here: projections are
        cache keys, which clients must not be able to make up. Raises BadRequest for too many."""
        bounds.PROJECTION.check(sum(map(len, map(self.texts, ("include", "show", "hide")))) + len(self._slices()))
        include = frozenset(self.texts("include")) & mappings.includable(name)
        # Most requests have none of them: the paths need not be looked up.
        if not ("show" in self._values or "hide" in self._values or self._slices()):
            return RequestProjection(model.Projection(include, features=features), {})
        slices = ((path, cut) for path, cut in map(_slice, self._slices()) if mappings.knows(name, path))
        cuts = {spelled: cut for path, cut in slices for spelled in mappings.spelled(name, path)}
        # Not even selected upstream: nothing of them is shown.
        emptied = frozenset(path for path, cut in cuts.items() if cut.start is None and cut.stop == 0)
        # show[]= is as good as none.
        show = frozenset(filter(None, self.texts("show")))
        projection = model.Projection(
            include,
            _paths(show, mappings, name) or (NOTHING if show else frozenset()),
            _paths(self.texts("hide"), mappings, name),
            frozenset(cuts) - emptied,
            emptied,
            features,
        )
        return RequestProjection(projection, cuts)

    def named_fields(self) -> Iterator[tuple[str, str]]:
        """Yield include[], show[] and slice[] as the client wrote them, each with the field that it names."""
        for parameter in ("include", "show"):
            yield from ((f"{parameter}[]={field}", field) for field in self.texts(parameter) if field)
        yield from ((name, name[6:-1]) for name, _ in self._slices())

    def _slices(self) -> list[tuple[str, str]]:
        return [(name, self._decode(values[-1])) for name, values in self._values.items() if name.startswith("slice[")]


def _paths(texts: Iterable[str], mappings: Mappings, name: str) -> frozenset[model.Path]:
    """Return the paths of those dotted texts that lead to a field."""
    paths = (tuple(text.split(".")) for text in texts)
    return frozenset(
        spelled for path in paths if mappings.knows(name, path) for spelled in mappings.spelled(name, path)
    )


def _slice(parameter: tuple[str, str]) -> tuple[model.Path, slice]:
    """`slice[offers]=[0:1]` and `slice[offers]=0:1` (contract v3-rest.md §2); an empty range is written as `[:0]`."""
    name, value = parameter
    range_match = SLICE.fullmatch(value.strip())
    if not range_match:
        raise errors.BadRequest(f"{name[:60]} must be a range like [0:5], not {value[:40]!r}")
    start, stop = (int(number) if number else None for number in range_match.groups())
    # One form for all empty ranges, by which `emptied` knows them.
    if stop is not None and 0 <= stop <= (start or 0):
        start, stop = None, 0
    return tuple(name[6:-1].split(".")), slice(start, stop)
