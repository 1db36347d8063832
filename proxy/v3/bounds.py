"""Bounds of a request: how often parameters may be repeated, and how long they may be.

Each is larger than what v3 clients are known to send; of v3's own bounds only that of queries is known. Pure.
"""

from dataclasses import dataclass

from proxy import errors


@dataclass(frozen=True, slots=True)
class Bound:
    """Maximum of something that a request may hold, because effort grows with it. `unit` is what is counted of the
    parameters."""

    parameters: tuple[str, ...]
    maximum: int
    unit: str

    def check(self, number: int, name: str = "") -> None:
        """Raise BadRequest beyond the maximum. `name` is the parameter as it was sent, where there are several."""
        if number > self.maximum:
            # The name is the client's text: the message must not be as long as the request.
            named = name[:60] or ", ".join(self.parameters)
            raise errors.BadRequest(f"{named}: at most {self.maximum} {self.unit}, not {number}")


REQUEST_LINE = 69_632  # bytes: 66 KiB of query and a path; aiohttp's default of 8 190 is 60 BOM lines

VALUES, FILTER_TEXTS = "filter[fields][<field>][]", ("filter[queries][]", "facet[queries][]")

PARAMETERS = Bound(("query string",), 1_000, "parameters")
PROJECTION = Bound(("include[]", "show[]", "hide[]", "slice[<field>]"), 150, "values together")
UIDS = Bound(("uid[]",), 100, "different values")  # v2's limit
Q = Bound(("q",), 2_000, "characters in a search")
SORT_KEYS = Bound(("sortby",), 10, "fields")
FILTERS = Bound(("filter[fields]",), 20, "fields")
FILTER_VALUES = Bound((VALUES,), 200, "values for each field")
FILTER_LENGTH = Bound((VALUES,), 2_000, "characters each")
FILTER_QUERIES = Bound(("filter[queries][]",), 20, "queries")
QUERY_LENGTH = Bound(FILTER_TEXTS, 2_000, "characters each")  # each is parsed
QUERIES_LENGTH = Bound(FILTER_TEXTS, 10_000, "characters together")
CONDITIONS = Bound(("filter[fields]", "filter[queries][]"), 100, "conditions together")
COUNTS = Bound(("facet[fields]", "facet[queries][]", "stats"), 20, "counts together")
PATTERNS = Bound((VALUES, *FILTER_TEXTS), 10, "values with * together")
MATCHES = Bound((VALUES, *FILTER_TEXTS), 1_000, "names for a value with *")
CALLBACK = Bound(("callback",), 128, "characters")
