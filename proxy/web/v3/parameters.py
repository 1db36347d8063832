"""What all of v3's endpoints have in common of a query string: how a reply is written, and what it shows.

Parameters of one endpoint are read in its own module.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from proxy import bounds, errors, model, parameters
from proxy.mapping.loader import Mappings

NOTHING = frozenset({("",)})  # show[] with no known name: a projection of no field
CALLBACK = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*|\[\d+\])*", re.ASCII)
SLICE = re.compile(r"\[?(-?\d{1,9})?:(-?\d{1,9})?\]?", re.ASCII)


class Style(NamedTuple):
    """How a reply is written, whatever it says."""

    pretty_print: bool = False
    callback: str | None = None
    suppress_status_codes: bool = False


class Shape(NamedTuple):
    """What a reply shows: the projection that everything is compiled for, and how far its lists are cut."""

    projection: model.Projection
    cuts: dict[model.Path, slice]


class Parameters(parameters.Parameters):
    """The parameters of one request, with those that shape its reply."""

    def style(self) -> Style:
        """pretty_print, callback and suppress_status_codes."""
        callback = self.text("callback") or None
        if callback:
            bounds.CALLBACK.check(len(callback))
        if callback and not CALLBACK.fullmatch(callback):
            raise errors.BadRequest("callback must be the name of a JavaScript function, like handle or app.handle")
        return Style(self.flag("pretty_print"), callback, self.flag("suppress_status_codes"))

    def shape(self, features: frozenset[str], mappings: Mappings, name: str) -> Shape:
        """include[], show[], hide[] and slice[] for an object. Names it does not have are ignored: projections are
        kept, and what clients make up must not be what they are kept by. Raises BadRequest for too many."""
        bounds.PROJECTION.check(sum(map(len, map(self.texts, ("include", "show", "hide")))) + len(self._slices()))
        include = frozenset(self.texts("include")) & mappings.includable(name)
        if not ("show" in self._values or "hide" in self._values or self._slices()):
            return Shape(model.Projection(include, features=features), {})
        slices = ((path, cut) for path, cut in map(_slice, self._slices()) if mappings.knows(name, path))
        cuts = {spelled: cut for path, cut in slices for spelled in mappings.spelled(name, path)}
        emptied = frozenset(path for path, cut in cuts.items() if cut.start is None and cut.stop == 0)
        show = frozenset(filter(None, self.texts("show")))
        projection = model.Projection(
            include,
            _paths(show, mappings, name) or (NOTHING if show else frozenset()),
            _paths(self.texts("hide"), mappings, name),
            frozenset(cuts) - emptied,
            emptied,
            features,
        )
        return Shape(projection, cuts)

    def _slices(self) -> list[tuple[str, str]]:
        return [(name, self._decode(values[-1])) for name, values in self._values.items() if name.startswith("slice[")]


def _paths(texts: Iterable[str], mappings: Mappings, name: str) -> frozenset[model.Path]:
    """The dotted paths among these that lead to a field."""
    paths = (tuple(text.split(".")) for text in texts)
    return frozenset(
        spelled for path in paths if mappings.knows(name, path) for spelled in mappings.spelled(name, path)
    )


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
