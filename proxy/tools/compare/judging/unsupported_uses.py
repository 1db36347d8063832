"""Causes of differences that lie in the request: a search uses a field without a source, or what the Nexar API lacks or
does in its own way; a match has a number with `*`. Each explains only what follows from it. Pure."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from proxy.tools.compare.judging import paths, unknown_uids
from proxy.tools.compare.judging.causes import Causes, field_at
from proxy.tools.compare.judging.findings import Cause, Difference
from proxy.traffic.v3_request import V3Request
from proxy.v3 import endpoints
from proxy.v3.encoding import TRUE

COUNTS = ("facet_results", "stats_results", "spec_metadata")
OPEN: tuple[Cause, ...] = ("unexplained", "order", "missing part", "extra part")  # causes that do not say why
DRILLDOWN = "spec_drilldown[include]"
RESULTS = ("results", "results[*]")  # order and choice of results
# Names in X-V3-Unsupported, each with the path of what it empties.
EMPTIED = (
    (re.compile(r"facet\[fields\]\[(.*)\]", re.DOTALL), "facet_results.fields"),
    (re.compile(r"facet\[queries\]=(.*)", re.DOTALL), "facet_results.queries"),
    (re.compile(r"stats\[(.*)\]", re.DOTALL), "stats_results"),
)
NUMBERS = ("mpn", "mpn_or_sku")
_RESULT = re.compile(r"results\[([^]]*)\]")
_QUERY_HITS = re.compile(r"results\[(\d+)\]\.hits")
_FIELD = re.compile(r"(?:filter\[fields\]|facet\[fields\]|stats)\[([\w.]+)\]")
_CLAUSE = re.compile(r'([\w.]+):("(?:[^"\\]|\\.)*"|\([^)]*\)|\S*)')


class FieldUse(NamedTuple):
    """Use of a field by a search: the parameter's first word, the field, and the value of a filter."""

    way: str
    field: str
    value: str = ""


class UnsupportedUses:
    """Unsupported uses of a request, by the responses to it. `unsupported` are the names that the candidate gives;
    `all_uids_known`: the sides have the same uids."""

    def __init__(
        self,
        request: V3Request,
        causes: Causes,
        unsupported: tuple[str, ...],
        *,
        baseline: Any,
        candidate: Any,
        all_uids_known: bool,
    ) -> None:
        endpoint = endpoints.of(request.path)
        self._is_search = endpoint is not None and endpoint.action == "search"
        is_match = endpoint is not None and endpoint.action == "match"
        has_queries = is_match and isinstance(baseline, dict) and "request" in baseline
        self._queries = baseline["request"]["queries"] if has_queries else []  # as a match's response repeats them
        used = list(_uses(request)) if self._is_search else []
        located = ((each, field_at(causes.site, request.endpoint, f"results[*].item.{each.field}")) for each in used)
        without = [each for each, found in located if found and found.row.entry.kind == "no source"]
        self._chosen = any(each.way in ("filter", "sortby") for each in without)
        self._counted = [each.field for each in without if each.way in ("facet", "stats")]
        (hits, shown), (candidate_hits, candidate_shown) = map(_shown, (baseline, candidate))
        self._more = isinstance(hits, int) and hits > len(shown)
        self._fewer_hits = isinstance(hits, int) and (candidate_hits or 0) < hits
        # Those with another uid, or without one, may be other parts that are taken for the same.
        self._shared = {each["uid"] for each in candidate_shown if "uid" in each}
        mpns = [each for each in used if each == FieldUse("filter", "mpn", each.value)]
        # The service finds each number apart from others, without a common order, without counts, and without specs.
        several = len(mpns) > 1 or any(each.value.startswith("(") for each in mpns)
        # v3 had tolerances as text, which the service sorts as numbers.
        by_tolerance = any(each.way == "sortby" and each.field.endswith("_tolerance.value") for each in used)
        ignored = any(name.startswith("sortby=") for name in unsupported)
        self._sorted_otherwise = ignored or several or by_tolerance
        self._upper_bound = bool(mpns) and request.values("limit") == ["0"]
        # The service describes no spec where it is not asked.
        self._undescribed = bool(mpns) or candidate_hits == 0
        self._filter_ignored = any(name.startswith("filter[") for name in unsupported)
        matches = ((pattern.fullmatch(name), path) for name in unsupported for pattern, path in EMPTIED)
        self._emptied = tuple(paths.field(path, match[1]) for match, path in matches if match)
        # Which specs a spec_drilldown suggests is the service's own choice.
        self._drilled = any(name == DRILLDOWN and value.lower() in TRUE for name, value in request.query)
        self._asked = {each.field for each in used if each.way in ("facet", "stats") and each.value.lower() in TRUE}
        self._filtered = {each.field for each in used if each.way == "filter"}
        # The order of uids, and which of them a page of counts has, depend on the uids; so does what a pattern matches.
        by_uid = [each for each in used if not all_uids_known and each.field.endswith(("uid", "uids"))]
        self._by_uid = any(each.way != "filter" for each in by_uid)
        self._by_pattern = any(each.way == "filter" and "*" in each.value for each in by_uid)
        # Counts may be without the filter that finds nothing on both sides.
        self._by_unknown = bool(by_uid and unknown_uids.requested(request) - unknown_uids.RECORDED)

    def cause(self, difference: Difference, cause: Cause) -> Cause:
        """Return the cause that lies in the request, else the given one."""
        path = difference.path
        in_counts = path.startswith(COUNTS)
        if cause not in OPEN:
            return cause
        if not self._is_search:
            # Of a number with `*`, the candidate cannot leave out hits that it does not see.
            place = _QUERY_HITS.fullmatch(difference.place) if path == "results[*].hits" else None
            query = self._queries[int(place[1])] if place and int(place[1]) < len(self._queries) else {}
            is_pattern = any("*" in (query.get(name) or "") for name in NUMBERS)
            return "unsupported" if is_pattern and difference.candidate > difference.baseline else cause
        if self._chosen and (in_counts or path == "hits" or path.startswith("results")):
            return "no source"
        if in_counts and any(field in path for field in self._counted):
            return "no source"
        if self._is_unsupported(difference):
            return "unsupported"
        chosen = in_counts or path in RESULTS
        by_uid = (self._by_pattern and path == "hits") or (chosen and (self._by_uid or self._by_pattern))
        return "unknown uid requested" if by_uid or (in_counts and self._by_unknown) else cause

    def _is_unsupported(self, difference: Difference) -> bool:
        """Return true if the difference follows from an unsupported use."""
        path, kind = difference.path, difference.kind
        if self._filter_ignored and self._fewer_hits and (path in ("hits", *RESULTS) or path.startswith(COUNTS)):
            return True  # the service lacks the name or uid, and finds nothing by it
        if path.startswith("results"):
            label = _RESULT.match(difference.place)
            another = self._more and (path in RESULTS or label is None or label[1] not in self._shared)
            return self._sorted_otherwise and (another or (path in RESULTS and kind == "order"))
        if path == "hits":
            return self._upper_bound and difference.candidate > difference.baseline
        undescribed = kind == "missing" and self._undescribed
        if (undescribed and re.fullmatch(r"spec_metadata(\.[^.]+|\[[^]]+\])", path)) or path.startswith(self._emptied):
            return True
        if not (self._drilled and path.startswith(COUNTS)):
            return False
        # A spec that the request does not name is suggested, and so is the rank of any.
        asked = (paths.field(at, name) for name in self._asked for at in ("facet_results.fields", "stats_results"))
        named = (name for name in self._asked | self._filtered if name.startswith("specs."))
        keys = (paths.field("spec_metadata", name.split(".")[1]) for name in named)
        return path.endswith(".spec_drilldown_rank") or not path.startswith((*asked, *keys, "facet_results.queries"))


def _uses(request: V3Request) -> Iterator[FieldUse]:
    """Yield the uses of fields by a search."""
    for name, value in request.query:
        way = name.partition("[")[0]
        if (match := _FIELD.match(name)) and (way == "filter" or name.endswith("[include]")):
            yield FieldUse(way, match[1], value)
        elif "[queries]" in name:
            yield from (FieldUse(way, field, text) for field, text in _CLAUSE.findall(value))
        elif way == "sortby":
            yield from (FieldUse(way, each.split()[0]) for each in value.split(",") if each.strip())


def _shown(response: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return the number of hits in a search's response, and its objects."""
    if not isinstance(response, dict):
        return None, []
    items = [each.get("item") for each in response.get("results") or () if isinstance(each, dict)]
    return response.get("hits"), [item for item in items if isinstance(item, dict)]
