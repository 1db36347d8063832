"""Causes of differences, derived from the kind of a difference and from the source of the field in the GraphQL API.

The field list (v3_fields.yaml) is walked by its own structure: `results[*].items[*].offers[*].seller.id` of a match is
field `id` of the object Seller, because the list says that `Part.offers` holds PartOffer and `PartOffer.seller` a
Seller. Fields outside v3's objects (hits, facets, the echo of the request) are not in the list and have no entry.
"""

from functools import lru_cache
from typing import Any, NamedTuple

from proxy.tools.compare.judging import fields, paths, unknown_uids
from proxy.tools.compare.judging.findings import ABSENT, Cause, Difference, Kind
from proxy.v3 import endpoints

KNOWN_PATHS = 2000  # entries of the field cache; bounded because paths come from client data
ROOTS = {
    "match": ("results", "[*]", "items", "[*]"),
    "search": ("results", "[*]", "item"),
    "get_multi": ("[*]",),
    "get": (),
}
COUNTS = ("hits", "count")  # numbers of parts: of a query, and of one facet value
QUERY_ERROR = "results[*].error"
FOUND, NOT_FOUND = 200, 404
EXPLANATIONS: dict[Cause, str] = {
    "moved": "a price or stock that changed within the run: the repeated baseline agrees",
    "order": "the same elements in another order",
    "format": "the same value in another format",
    "error shape": "both sides reject the request, with different messages",
    "missing part": "the baseline returns parts that the candidate does not",
    "extra part": "the candidate returns parts that the baseline does not",
    "status": "one side refuses what the other serves, or they respond with different HTTP statuses",
    "unsupported": "it follows from what the Nexar API lacks or does in its own way: what X-V3-Unsupported names, "
    "specs that spec_drilldown suggests, a filter by mpn, a spec of a search without hits, hits of a number with *",
    "uid not known": "v3's uid is on no record, so v3bridge computes one; `compare --learn-uids` makes a table",
    "unknown uid requested": "the request is by a uid that one service lacks; `compare --learn-uids` makes a table",
}


class FieldEntry(NamedTuple):
    """Entry of the field list."""

    object: str
    field: str
    entry: fields.V3Field

    @property
    def name(self) -> str:
        return f"{self.object}.{self.field}"


class LocatedField(NamedTuple):
    """Field of a v3 object that contains a difference: `rest` are the steps from it down to the difference, `above` is
    the nearest enclosing field without an exact source."""

    row: FieldEntry
    rest: tuple[str, ...]
    above: FieldEntry | None


class Causes:
    """Causes of differences, looked up in the field list of one site."""

    def __init__(self, objects: fields.Objects) -> None:
        self._objects = objects
        self.field = lru_cache(KNOWN_PATHS)(self._field)

    def _field(self, endpoint: str, path: str) -> LocatedField | None:
        """Find the field that contains a path of an endpoint's response; None outside v3's objects."""
        found = endpoints.of(endpoint)
        below = _below(found, paths.steps(path))
        if found is None or not below or paths.is_whole(path):
            return None
        return self._walk(found.object, below, None)

    def _walk(self, name: str, steps: tuple[str, ...], above: FieldEntry | None) -> LocatedField | None:
        entry = self._objects[name].get(steps[0])
        if entry is None:
            return None
        row, rest = FieldEntry(name, steps[0], entry), steps[1:]
        below = rest[1:] if entry.each or entry.keyed else rest
        if entry.target and below:
            inner = self._walk(entry.target, below, above if entry.kind == "exact" else row)
            if inner is not None:
                return inner
        return LocatedField(row, rest, above)

    def without_source(self, endpoint: str, difference: Difference) -> FieldEntry | None:
        """Return the field if the API has no source for it and the candidate shows what the list states for that."""
        found = self.field(endpoint, difference.path)
        if found is None or found.row.entry.kind != "no source":
            return None
        shown = _inside(found.row.entry.none, found.rest)
        return found.row if _same(shown, difference.candidate) else None

    def has_no_source(self, endpoint: str, name: str) -> bool:
        """Return true if the API has no source for a dotted field of the endpoint's object."""
        found = endpoints.of(endpoint)
        located = self._walk(found.object, tuple(name.split(".")), None) if found else None
        return located is not None and located.row.entry.kind == "no source"

    def derived(self, endpoint: str, difference: Difference) -> FieldEntry | None:
        """Return the derived field that contains the difference: the field itself or the nearest enclosing one."""
        found = self.field(endpoint, difference.path)
        if found is None or found.row.entry.kind == "no source":
            return None
        return found.row if found.row.entry.kind == "derived" else found.above

    def of(self, endpoint: str, difference: Difference, *, refused: bool = False) -> Cause:
        """Determine the cause. `refused` is true where both sides respond with an error."""
        if difference.kind == "status":
            return _of_status(endpoint, difference)
        if difference.kind == unknown_uids.KIND:
            return "unknown uid requested" if difference.path in unknown_uids.REQUESTED else "uid not known"
        if refused:
            return "error shape"
        if paths.is_whole(difference.path):
            return "unexplained"
        if self.without_source(endpoint, difference):
            return "no source"
        return self._of_kind(endpoint, difference) or (
            "derived" if self.derived(endpoint, difference) else "unexplained"
        )

    def _of_kind(self, endpoint: str, difference: Difference) -> Cause | None:
        match difference.kind:
            case _ if endpoint == "/parts/match" and is_refused_query(difference):
                return "status"
            case "order" | "format":
                return difference.kind
            case "missing" if _is_part(endpoint, difference.path):
                return "missing part"
            case "extra" if _is_part(endpoint, difference.path):
                return "extra part"
            case "value" if _is_count(endpoint, difference):
                return "missing part" if difference.baseline > difference.candidate else "extra part"
        return None

    def why(self, endpoint: str, path: str, kind: Kind, cause: Cause) -> str:
        """Explain a cause in one sentence, for reports."""
        if cause in EXPLANATIONS:
            return EXPLANATIONS[cause]
        if kind == "unreadable":
            return "the body of the baseline or of the candidate is not JSON: a sample says which"
        found = self.field(endpoint, path)
        if found is None:
            return "the field stands around v3's objects, or v3 had none of that name"
        row, entry = found.row, found.row.entry
        if cause == "derived" and entry.kind != "derived" and found.above:
            row, entry = found.above, found.above.entry
        if entry.kind != "exact":
            return f"{row.name} ({entry.kind}): {entry.note}"
        plan = f", and is empty where the plan lacks {entry.plan}" if entry.plan else ""
        return f"{row.name} is read from {entry.source}{plan}"


def _below(endpoint: endpoints.Endpoint | None, steps: tuple[str, ...]) -> tuple[str, ...]:
    """Return the steps below the object that the endpoint responds with; empty outside it."""
    if endpoint is None:
        return ()
    root = ROOTS[endpoint.action]
    return steps[len(root) :] if steps[: len(root)] == root else ()


def _is_part(endpoint: str, path: str) -> bool:
    """Return true for a whole part: its entry in a search result, the `item` of that, or an item of a match."""
    found = endpoints.of(endpoint)
    if found is None or found.object != "Part":
        return False
    root, steps = ROOTS[found.action], paths.steps(path)
    return bool(steps) and steps in (root, root[:-1] if found.action == "search" else root)


def _is_count(endpoint: str, difference: Difference) -> bool:
    """Return true for a number of parts: others are missing or extra beyond the page shown."""
    found = endpoints.of(endpoint)
    counted = type(difference.baseline) is int and type(difference.candidate) is int
    return counted and found is not None and found.object == "Part" and paths.steps(difference.path)[-1] in COUNTS


def is_refused_query(difference: Difference) -> bool:
    """Return true if only one side refuses a query of a match."""
    errors = {type(difference.baseline), type(difference.candidate)}
    return difference.path == QUERY_ERROR and errors == {str, type(None)}


def _of_status(endpoint: str, difference: Difference) -> Cause:
    """Classify a status difference: 200 against 404 for one part means a missing or an extra part."""
    found = endpoints.of(endpoint)
    if found is not None and found.object == "Part" and found.action == "get":
        statuses = difference.baseline, difference.candidate
        if statuses in ((FOUND, NOT_FOUND), (NOT_FOUND, FOUND)):
            return "missing part" if difference.baseline == FOUND else "extra part"
    return "status"


def _inside(value: Any, steps: tuple[str, ...]) -> Any:
    """Return the value inside a constant at relative steps; ABSENT where there is none."""
    for step in steps:
        if step == paths.ELEMENT and isinstance(value, list) and value:
            value = value[0]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return ABSENT
    return value


def _same(one: Any, other: Any) -> bool:
    return one is other or (one is not ABSENT and other is not ABSENT and type(one) is type(other) and one == other)
