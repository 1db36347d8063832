"""Causes of differences in the response to a search that lie in the request: it uses a field without a source, or what
the Nexar API lacks or does in its own way. Pure."""

import re

from proxy.tools.compare.judging.causes import Causes
from proxy.tools.compare.judging.findings import Cause, Difference
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse
from proxy.v3 import endpoints
from proxy.v3.parameters import TRUE

COUNTS = ("facet_results", "stats_results", "spec_metadata")
OPEN: tuple[Cause, ...] = ("unexplained", "order", "missing part", "extra part")  # causes that do not say why
DRILLDOWN = "spec_drilldown[include]"
NO_HITS = re.compile(rb'"hits": ?0\b')
_FIELD = re.compile(r"(?:filter\[fields\]|facet\[fields\]|stats)\[([\w.]+)\]")
_CLAUSE = re.compile(r"([\w.]+):")


class UnsupportedUses:
    """Unsupported uses of a request, by the candidate's response to it. `all_uids_known`: the sides have the same
    uids."""

    def __init__(self, request: V3Request, causes: Causes, candidate: SideResponse, *, all_uids_known: bool) -> None:
        endpoint, unsupported = endpoints.of(request.path), candidate.unsupported
        self._is_search = endpoint is not None and endpoint.action == "search"
        # Which specs a spec_drilldown suggests, and what it counts of ranges, is the service's own choice.
        drilled = (value for name, value in request.query if name == DRILLDOWN)
        self._counts = bool(unsupported) or any(value.lower() in TRUE for value in drilled)
        self._results = any(name.startswith(("sortby=", "filter[")) for name in unsupported)
        named = _fields(request) if self._is_search else ()
        without = [(way, field) for way, field in named if causes.has_no_source(request.endpoint, field)]
        self._chosen = any(way in ("filter", "sortby") for way, _ in without)
        self._counted = [field for way, field in without if way in ("facet", "stats")]
        # The service describes no spec where it is not asked, or asked by number.
        self._undescribed = ("filter", "mpn") in named or NO_HITS.search(candidate.body) is not None
        # The order of uids, and which of them a page of counts has, depend on the uids.
        self._by_uid = not all_uids_known and any(
            way != "filter" and field.endswith(("uid", "uids")) for way, field in named
        )

    def cause(self, difference: Difference, cause: Cause) -> Cause:
        """Return the cause that lies in the request, else the given one."""
        path = difference.path
        in_counts = path.startswith(COUNTS)
        if not self._is_search or cause not in OPEN:
            return cause
        # Another order or choice of results: any of them may be compared with another one.
        if path.startswith("results") and (self._chosen or self._results):
            return "no source" if self._chosen else "unsupported"
        if not in_counts and path not in ("hits", "results", "results[*]"):
            return cause
        if self._chosen or (in_counts and any(field in path for field in self._counted)):
            return "no source"
        if self._results or (in_counts and self._counts) or (self._undescribed and path.startswith("spec_metadata")):
            return "unsupported"
        return "unknown uid requested" if self._by_uid else cause


def _fields(request: V3Request) -> list[tuple[str, str]]:
    """Return the fields that a search uses, each with the parameter's first word."""
    found: list[tuple[str, str]] = []
    for name, value in request.query:
        way = name.partition("[")[0]
        if match := _FIELD.match(name):
            found.append((way, match[1]))
        elif "[queries]" in name:
            found += [(way, field) for field in _CLAUSE.findall(value)]
        elif way == "sortby":
            found += [(way, each.split()[0]) for each in value.split(",") if each.strip()]
    return found
