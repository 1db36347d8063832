"""Bounds of a request: how often parameters may be repeated, and how long they may be.

Each is larger than what v3 clients are known to send; of v3's own bounds only that of queries is known. Pure.
"""

from dataclasses import dataclass

from proxy import errors


@dataclass(frozen=True, slots=True)
class Bound:
    """Maximum of something that a request may hold. `unit` is what is counted of the parameters; `reason` says which
    effort grows with it."""

    parameters: tuple[str, ...]
    maximum: int
    unit: str
    reason: str

    def check(self, number: int, name: str = "") -> None:
        """Raise BadRequest beyond the maximum. `name` is the parameter as it was sent, where there are several."""
        if number > self.maximum:
            # The name is the client's text: the message must not be as long as the request.
            named = name[:60] or ", ".join(self.parameters)
            raise errors.BadRequest(f"{named}: at most {self.maximum} {self.unit}, not {number}")


REQUEST_LINE = 69_632  # bytes: 66 KiB of query and a path; aiohttp's default of 8 190 is 60 BOM lines
PATH = 512  # bytes before the query, including scheme and host of an absolute target

VALUES, FILTER_TEXTS = "filter[fields][<field>][]", ("filter[queries][]", "facet[queries][]")

PARAMETERS = Bound(("query string",), 1_000, "parameters", "each is taken apart before the API key is known")
PROJECTION = Bound(
    ("include[]", "show[]", "hide[]", "slice[<field>]"), 150, "values together", "a mapping is compiled for them"
)
UIDS = Bound(("uid[]",), 100, "different values", "v2's limit; each part is billed")
Q = Bound(("q",), 2_000, "characters in a search", "each word is looked up")
SORT_KEYS = Bound(("sortby",), 10, "fields", "a list is sorted by each")
FILTERS = Bound(("filter[fields]",), 20, "fields", "each is a filter of its own")
FILTER_VALUES = Bound((VALUES,), 200, "values for each field", "each is looked up")
FILTER_LENGTH = Bound((VALUES,), 2_000, "characters each", "values are compared with names")
FILTER_QUERIES = Bound(("filter[queries][]",), 20, "queries", "each is parsed")
QUERY_LENGTH = Bound(FILTER_TEXTS, 2_000, "characters each", "parsing takes 10 µs for each")
QUERIES_LENGTH = Bound(FILTER_TEXTS, 10_000, "characters together", "parsing takes 10 µs for each")
CONDITIONS = Bound(("filter[fields]", "filter[queries][]"), 100, "conditions together", "each is part of every count")
COUNTS = Bound(
    ("facet[fields]", "facet[queries][]", "stats"), 20, "counts together", "each can be a request to the upstream"
)
PATTERNS = Bound((VALUES, *FILTER_TEXTS), 10, "values with * together", "each is compared with all names of a list")
MATCHES = Bound(
    (VALUES, *FILTER_TEXTS), 1_000, "names for a value with *", "the upstream is sent the ids of parts' makers"
)
CALLBACK = Bound(("callback",), 128, "characters", "it is repeated in the response")

ALL = (
    PARAMETERS,
    PROJECTION,
    UIDS,
    Q,
    SORT_KEYS,
    FILTERS,
    FILTER_VALUES,
    FILTER_LENGTH,
    FILTER_QUERIES,
    QUERY_LENGTH,
    QUERIES_LENGTH,
    CONDITIONS,
    COUNTS,
    PATTERNS,
    MATCHES,
    CALLBACK,
)
