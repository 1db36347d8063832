"""Values that packages exchange, parsed once at the border (v3, graphql, v4) and frozen."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

# Of parts/match, from v3's documentation and clients (contract v3-rest.md §4).
MATCH_QUERIES_MAX = 20
PARTS_MAX = 100  # of one upstream operation: the sum of limits, and of queries or ids (contract graphql.md §2.1)
MATCH_LIMIT_DEFAULT = 3
MATCH_LIMIT_MAX = 20
MATCH_WINDOW_MAX = 100  # start + limit
# Of */search; v3's and the upstream's are the same (contract v3-rest.md §1.1, graphql.md §2.1).
SEARCH_LIMIT_DEFAULT = 10
SEARCH_LIMIT_MAX = 100
SEARCH_START_MAX = 1000
# Paths of the dialects that are not v3: documents of today's API and of v4, and v4's REST wrapper (contract v4.md).
GRAPHQL_PATHS = ("/graphql", "/api/v4/endpoint")
WRAPPER = "/api/v4/rest/parts/match"

Path = tuple[str, ...]


class PartsMatchQuery(msgspec.Struct, frozen=True):
    """One entry of `queries` (contract v3-rest.md §3.6): the nine keys of the echo, and a message for the client, with
    which it is echoed and never sent upstream."""

    q: str = ""
    mpn: str | None = None
    brand: str | None = None
    sku: str | None = None
    seller: str | None = None
    mpn_or_sku: str | None = None
    start: int = 0
    limit: int = MATCH_LIMIT_DEFAULT
    reference: Any = None
    error: str | None = None


class PartsMatchRequest(msgspec.Struct, frozen=True):
    """`/parts/match`: up to 20 queries and whether punctuation counts."""

    queries: tuple[PartsMatchQuery, ...]
    exact_only: bool = False


class FacetField(msgspec.Struct, frozen=True):
    """`facet[fields][<field>]` (contract v3-rest.md §1.1)."""

    field: str
    include: bool = False
    exclude_filter: bool = False
    start: int = 0
    limit: int = SEARCH_LIMIT_DEFAULT


class Drilldown(msgspec.Struct, frozen=True):
    """`spec_drilldown`: facets of the specs that narrow a search best."""

    include: bool = False
    exclude_filter: bool = False
    limit: int = SEARCH_LIMIT_DEFAULT


class SearchRequest(msgspec.Struct, frozen=True):
    """Any `*/search` (contract v3-rest.md §1.1). `filters` are fields with their accepted values; `stats` are fields
    with a flag, true if the filter on the field itself does not apply to them."""

    q: str = ""
    start: int = 0
    limit: int = SEARCH_LIMIT_DEFAULT
    # v3's default, relevance (contract v3-rest.md §1.1)
    sortby: str = "score desc"
    filters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    filter_queries: tuple[str, ...] = ()
    facets: tuple[FacetField, ...] = ()
    facet_queries: tuple[str, ...] = ()
    stats: tuple[tuple[str, bool], ...] = ()
    drilldown: Drilldown | None = None


class Projection(msgspec.Struct, frozen=True):
    """Choice of the fields of an object that a response shows: `include` of those hidden by default, paths to `show`
    and to `hide`, beginnings and ends of lists. `features` are those of the application's plan; `view` is the object
    that a part is mapped to: v3's, or that of another dialect."""

    include: frozenset[str] = frozenset()
    show: frozenset[Path] = frozenset()
    hide: frozenset[Path] = frozenset()
    slices: tuple[tuple[Path, tuple[int | None, int | None]], ...] = ()
    features: frozenset[str] = frozenset()
    view: str = "Part"


class MappingContext(msgspec.Struct, frozen=True):
    """Values of a request that mapping functions read (in mapping files `$country` …): where the caller's application
    buys (ISO 3166 alpha-2 country, ISO 4217 currency), the requested uid, and the ids of all sellers by name."""

    country: str
    currency: str
    requested_uid: str | None = None
    sellers: Mapping[str, tuple[str, ...]] = {}


class GraphQLError(msgspec.Struct, frozen=True):
    """One entry of `errors` (contract graphql.md §3.2). `path` and `extensions` may be absent."""

    message: str
    path: list[str | int] | str | None = None
    extensions: dict[str, Any] | None = None


class Envelope(msgspec.Struct, gc=False):
    """Top level of a response. `data` is None where errors left none."""

    data: Any = None
    errors: list[GraphQLError] | None = None


class EncodedOperation(msgspec.Struct, frozen=True):
    """Encoded GraphQL request. `payload` is its JSON body; `decode` raises msgspec.MsgspecError for a response of other
    types; `parts_max` is the most parts that it can cost."""

    name: str
    payload: bytes
    decode: Callable[[bytes], Envelope]
    parts_max: int


class QuotaStatus(NamedTuple):
    """Status of the limit with the least remaining, or of the application where nothing is limited: parts used or
    uncertain, the limit (None: unlimited), whole seconds until it is reset (None: never)."""

    used: int
    limit: int | None
    reset: int | None


class Seen(NamedTuple):
    """Requests of one kind on one day (in days since 1970, UTC) with the same values, and the time of the last one.
    `client`: of a program to an endpoint, such as `parts/match`; application and key are empty without a valid API key;
    `detail` are parameters and fields that v3bridge had no source for, between commas. `unknown key`: with a key that
    no application has, by its digest; `endpoint` is the client's address. `failure`: one that failed; `endpoint` is its
    route, `detail` what a person needs to find the reason."""

    kind: str
    day: int
    application: str
    key: str
    endpoint: str
    user_agent: str
    detail: str
    requests: int = 0
    last: float = 0.0


class FailureDetail(msgspec.Struct, frozen=True):
    """What a person needs of a failed request: its id in the log, fields of its line, the message of the response, and
    the request target without API keys: no target where the request was none of v3's, and neither where it is long."""

    request: str
    method: str
    status: int
    ms: float
    error: str
    message: str = ""
    target: str = ""
