"""Causes of differences, derived from the kind of a difference and from the source of the field in the GraphQL API.

The field list (v3_fields.yaml) is walked by its own structure: `results[*].items[*].offers[*].seller.id` of a match is
field `id` of the object Seller, because the list says that `Part.offers` holds PartOffer and `PartOffer.seller` a
Seller. Fields outside v3's objects (hits, facets, the echo of the request) are not in the list and have no entry. It is
not derived from mappings/: the mappings under test must not decide what counts.
"""

import json
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from proxy.kit import located_yaml
from proxy.tools.compare.judging import paths, unknown_uids
from proxy.tools.compare.judging.findings import ABSENT, Cause, Difference, Kind
from proxy.v3 import endpoints

SITE = "octopart"  # default; it is part of a field's name, and does not influence a judgement
FILE = Path(__file__).with_name("v3_fields.yaml")
KNOWN_PATHS = 2000  # entries of the field cache; bounded because paths come from client data
ROOTS = {
    "match": ("results", "[*]", "items", "[*]"),
    "search": ("results", "[*]", "item"),
    "get_multi": ("[*]",),
    "get": (),
}
COUNTS = ("hits", "count")  # numbers of parts: of a query, and of one facet value
QUERY_ERROR = "results[*].error"
OF_STATUSES: dict[tuple[int, int], Cause] = {(200, 404): "missing part", (404, 200): "extra part"}
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


class V3Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entry of a field. The keys are documented in the file. `is`, `each` or `keyed` names the object type of the value
    or of its elements; `none` is UNSET where the API has a source."""

    source: str = msgspec.field(name="from", default="")
    is_: str | None = msgspec.field(name="is", default=None)
    each: str | None = None
    keyed: str | None = None
    derived: str | None = None
    plan: str | None = None
    none: Any = msgspec.UNSET
    why: str = ""

    @property
    def kind(self) -> Literal["exact", "derived", "no source"]:
        """Kind of the source: exact, derived or "no source"."""
        if self.none is not msgspec.UNSET:
            return "no source"
        return "derived" if self.derived else "exact"


Objects = dict[str, dict[str, V3Field]]  # by object name, then by field name


@cache
def load_fields(site: str = SITE) -> Objects:
    """Load the field list, with `{site}` substituted."""
    text = FILE.read_text(encoding="utf-8").replace("{site}", site)
    raw = located_yaml.loads(text, FILE.name, ValueError).data
    return {
        name: {
            field: V3Field(source=entry) if isinstance(entry, str) else msgspec.convert(entry, V3Field)
            for field, entry in fields.items()
        }
        for name, fields in raw.items()
    }


class FieldEntry(NamedTuple):
    """Entry of the field list."""

    object: str
    field: str
    entry: V3Field


class LocatedField(NamedTuple):
    """Field of a v3 object that contains a difference: `rest` are the steps from it down to the difference, `above` is
    the nearest enclosing field without an exact source."""

    row: FieldEntry
    rest: tuple[str, ...]
    above: FieldEntry | None


@lru_cache(KNOWN_PATHS)
def field_at(site: str, endpoint: str, path: str) -> LocatedField | None:
    """Find the field that contains a path of an endpoint's response; None outside v3's objects."""
    found, steps = endpoints.of(endpoint), paths.steps(path)
    root = ROOTS[found.action] if found else ()
    if found is None or path in paths.WHOLE or steps[: len(root)] != root:
        return None
    objects, name, steps, located, above = load_fields(site), found.object, steps[len(root) :], None, None
    while steps and (entry := objects[name].get(steps[0])):
        row, rest = FieldEntry(name, steps[0], entry), steps[1:]
        located = LocatedField(row, rest, above)
        target = entry.is_ or entry.each or entry.keyed
        if not target:
            break
        above = above if entry.kind == "exact" else row
        name, steps = target, rest[1:] if entry.each or entry.keyed else rest
    return located


class Causes(NamedTuple):
    """Causes of differences, looked up in the field list of a site."""

    site: str = SITE

    def lacks_source(self, endpoint: str, difference: Difference) -> bool:
        """Return true if the API has no source for the field and the candidate shows what the list states for that."""
        found = field_at(self.site, endpoint, difference.path)
        if found is None or found.row.entry.kind != "no source":
            return False
        stated = found.row.entry.none
        for step in found.rest:
            if step == paths.ELEMENT and isinstance(stated, list) and stated:
                stated = stated[0]
            else:
                stated = stated[step] if isinstance(stated, dict) and step in stated else ABSENT
        shown = difference.candidate
        return stated is shown or (type(stated) is type(shown) and stated == shown)

    def of(self, endpoint: str, difference: Difference, *, refused: bool = False) -> Cause:
        """Determine the cause. `refused` is true where both sides respond with an error."""
        cause: Cause = "unexplained"
        if difference.kind == "status":
            # 200 against 404 for one part means a missing or an extra part.
            found, statuses = endpoints.of(endpoint), (difference.baseline, difference.candidate)
            is_part = found is not None and found.object == "Part" and found.action == "get"
            cause = OF_STATUSES.get(statuses, "status") if is_part else "status"
        elif difference.kind == unknown_uids.KIND:
            cause = "unknown uid requested" if difference.path in unknown_uids.REQUESTED else "uid not known"
        elif refused:
            cause = "error shape"
        elif difference.path not in paths.WHOLE:
            is_empty = self.lacks_source(endpoint, difference)
            cause = "no source" if is_empty else self._of_kind(endpoint, difference)
        return cause

    def _of_kind(self, endpoint: str, difference: Difference) -> Cause:
        kind, path, one, other = difference.kind, difference.path, difference.baseline, difference.candidate
        if endpoint == "/parts/match" and is_refused_query(difference):
            return "status"
        if kind in ("order", "format"):
            return "order" if kind == "order" else "format"
        found, steps = endpoints.of(endpoint), paths.steps(path)
        if found is not None and found.object == "Part":
            # A whole part is its entry in a search result, the `item` of that, or an item of a match.
            root = ROOTS[found.action]
            is_part = bool(steps) and steps in (root, root[:-1] if found.action == "search" else root)
            # By a number of parts, others are missing or extra beyond the page shown.
            is_count = kind == "value" and steps[-1] in COUNTS and type(one) is type(other) is int
            if is_count or (is_part and kind in ("missing", "extra")):
                return "missing part" if kind == "missing" or (is_count and one > other) else "extra part"
        located = field_at(self.site, endpoint, path)
        if located is None or located.row.entry.kind == "no source":
            return "unexplained"
        return "derived" if located.row.entry.kind == "derived" or located.above else "unexplained"

    def why(self, endpoint: str, path: str, kind: Kind, cause: Cause) -> str:
        """Explain a cause in one sentence, for reports."""
        if cause in EXPLANATIONS:
            return EXPLANATIONS[cause]
        if kind == "unreadable":
            return "the body of the baseline or of the candidate is not JSON: a sample says which"
        found = field_at(self.site, endpoint, path)
        if found is None:
            return "the field stands around v3's objects, or v3 had none of that name"
        row, entry = found.row, found.row.entry
        if cause == "derived" and entry.kind != "derived" and found.above:
            row, entry = found.above, found.above.entry
        shown = f"{row.object}.{row.field}"
        if entry.kind == "no source":
            return f"{shown} (no source): {entry.why}; a client sees {json.dumps(entry.none)}"
        if entry.kind == "derived":
            return f"{shown} (derived): {entry.derived}"
        plan = f", and is empty where the plan lacks {entry.plan}" if entry.plan else ""
        return f"{shown} is read from {entry.source}{plan}"


def is_refused_query(difference: Difference) -> bool:
    """Return true if only one side refuses a query of a match."""
    errors = {type(difference.baseline), type(difference.candidate)}
    return difference.path == QUERY_ERROR and errors == {str, type(None)}
