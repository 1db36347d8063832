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
# `?` is what a program sends that writes jQuery's `callback=?` without jQuery.
CALLBACK = re.compile(r"\?|[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*|\[\d+\])*", re.ASCII)
SLICE = re.compile(r"\[?(-?\d{1,9})?:(-?\d{1,9})?\]?", re.ASCII)


class ResponseFormat(NamedTuple):
    """Format of a response: pretty-printed, JSONP, and whether errors have status 200."""

    pretty_print: bool = False
    callback: str | None = None
    suppress_status_codes: bool = False


class RequestParameters(parameters.Parameters):
    def response_format(self) -> ResponseFormat:
        """Parse pretty_print, callback and suppress_status_codes."""
        callback = self.text("callback") or None
        if callback:
            bounds.CALLBACK.check(len(callback))
        if callback and not CALLBACK.fullmatch(callback):
            raise errors.BadRequest("callback must be the name of a JavaScript function, like handle or app.handle")
        return ResponseFormat(self.flag("pretty_print"), callback, self.flag("suppress_status_codes"))

    def projection(self, features: frozenset[str], mappings: Mappings, name: str) -> model.Projection:
        """include[], show[], hide[] and slice[] for object `name`. Unknown fields are dropped. Raises BadRequest for
        too many."""
        sliced = self.names("slice[")
        bounds.PROJECTION.check(sum(map(len, map(self.texts, ("include", "show", "hide")))) + len(sliced))
        slices = {
            spelled: cut
            for path, cut in (_slice(each, self.text(each) or "") for each in sliced)
            if mappings.knows(name, path)
            for spelled in mappings.spelled(name, path)
        }
        show, hide = [text for text in self.texts("show") if text], self.texts("hide")  # show[]= is as good as none
        return model.Projection(
            frozenset(self.texts("include")) & mappings.hidden[name],
            (_paths(show, mappings, name) or NOTHING) if show else frozenset(),
            _paths(hide, mappings, name) if hide else frozenset(),
            tuple(slices.items()),
            features,
        )

    def named_fields(self) -> Iterator[tuple[str, str]]:
        """Yield include[], show[] and slice[] as the client wrote them, each with the field that it names."""
        for parameter in ("include", "show"):
            yield from ((f"{parameter}[]={field}", field) for field in self.texts(parameter) if field)
        yield from ((name, name[6:-1]) for name in self.names("slice["))


def _paths(texts: Iterable[str], mappings: Mappings, name: str) -> frozenset[model.Path]:
    """Return the paths of those dotted texts that lead to a field."""
    paths = (tuple(text.split(".")) for text in texts)
    return frozenset(
        spelled for path in paths if mappings.knows(name, path) for spelled in mappings.spelled(name, path)
    )


def _slice(name: str, value: str) -> tuple[model.Path, tuple[int | None, int | None]]:
    """`slice[offers]=[0:1]` and `slice[offers]=0:1` (contract v3-rest.md §2)."""
    range_match = SLICE.fullmatch(value.strip())
    if not range_match:
        raise errors.BadRequest(f"{name[:60]} must be a range like [0:5], not {value[:40]!r}")
    start, stop = (int(number) if number else None for number in range_match.groups())
    return tuple(name[6:-1].split(".")), (start, stop)
