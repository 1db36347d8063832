"""Settings with their types, defaults, units and limits; meanings.yaml says what they are for.

A description completes the words "it accepts" of an error message. Checks across several settings are in
config/loader.py.
"""

import datetime
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from proxy.config.base import BLOCK, Flag, Name, OutgoingProxy, PemFile, Port, Settings, above_zero, limits
from proxy.config.secret import (
    STORE_FORMS,
    ClientId,
    Digest,
    File,
    Network,
    Secret,
    StoreUrl,
)

Feature = Literal[
    "LEAD_TIME",
    "LIFECYCLE",
    "DATASHEETS",
    "TECH_SPECS",
    "CAD_MODELS",
    "SIMILAR_PARTS",
    "SUGGESTIONS",
    "SPELLING_CORRECTIONS",
    "INVENTORY_HISTORY",
]
FEATURES: tuple[Feature, ...] = get_args(Feature)  # SupNexarFeatureID, contract graphql.md §1.3

PARTS_MAX = 1_000_000_000_000
WORKBOOK_LOGIN = "workbook"  # API key that a login of a workbook is charged to; its application's name begins with it
Parts = Annotated[
    Literal["unlimited"] | Annotated[int, Meta(ge=0, le=PARTS_MAX)],
    Meta(description="unlimited, or a whole number of parts such as 1000"),
]
# A share in per cent is that of the application's limit.
PartsOfKey = Annotated[
    Annotated[str, Meta(pattern=r"^(unlimited|([1-9][0-9]?|100) ?%)\Z")] | Annotated[int, Meta(ge=0, le=PARTS_MAX)],
    Meta(description="unlimited, a whole number of parts such as 1000, or a share of the application's such as 30%"),
]
Period = Literal["month", "lifetime"]
# No user, query or fragment: addresses are shown in logs, and paths are appended to some.
Url = r"^https?://[^\s/@?#]+(/[^\s@?#]*)?\Z"
# ASCII without quotes and angle brackets, because it is written into a response header.
PageUrl = r"^https?://[A-Za-z0-9._~:/?#!$&'()*+,;=%\[\]-]+\Z"


HEALTH_CHECK_CONNECTIONS = 64  # accepted beyond listen.connections, so that health checks get a response
_OTHER_FILES = 64  # open files for the store, libraries, and listening sockets


class ListenSettings(Settings, frozen=True):
    """Listening address, worker processes, and limits of client connections."""

    host: Annotated[str, Meta(min_length=1, description="a host name or an address")] = "127.0.0.1"
    port: Port = 8080
    workers: Annotated[int, limits("processes", 1, 256)] = 1
    stop_seconds: Annotated[float, limits("seconds", 0, 3600)] = 10.0
    drain_seconds: Annotated[float, limits("seconds", 0, 3600)] = 2.0
    connections: Annotated[int, limits("connections", 1, 1_000_000)] = 1000
    header_seconds: Annotated[float, above_zero("seconds", 3600)] = 20.0
    # Longer than proxies in front keep connections (nginx: 60 s), so that none sends a request as this side closes.
    idle_seconds: Annotated[float, above_zero("seconds", 86_400)] = 120.0
    write_seconds: Annotated[float, above_zero("seconds", 3600)] = 30.0
    unread_bytes: Annotated[int, limits("bytes", 1_048_576, 1_000_000_000_000)] = 134_217_728
    failed_auth_per_minute: Annotated[int, limits("wrong keys a minute", 0, 1000, "off")] = 20
    trusted_proxies: Annotated[
        tuple[Network, ...], Meta(description="a list of addresses or networks, such as 10.0.0.0/8")
    ] = ()
    metrics: Flag = False


class AdminSettings(Settings, frozen=True):
    """The operators' port: its listening address, and the token that its status needs."""

    host: Annotated[str, Meta(min_length=1, description="a host name or an address")] = "127.0.0.1"
    port: Port = 8088
    token: Annotated[
        Secret | None, Meta(description="a token of 16 characters or more in quotes, env:NAME or file:PATH")
    ] = None


class TimeoutSettings(Settings, frozen=True):
    """Timeouts of one upstream. An error message names the timeout that was exceeded."""

    connect_seconds: Annotated[float, above_zero("seconds to establish a connection", 3600)] = 5.0
    first_byte_seconds: Annotated[float, above_zero("seconds without a byte of the response", 3600)] = 20.0
    # Of a v3 request, not of one attempt: a client waits no longer, also with a retry.
    total_seconds: Annotated[float, above_zero("seconds for a whole response, with a retry", 3600)] = 30.0


class BreakerSettings(Settings, frozen=True):
    """Circuit breaker; the GraphQL endpoint and the token endpoint have one each."""

    failures: Annotated[int, limits("failures in a row", 0, 1_000_000, "never")] = 10
    cooldown_seconds: Annotated[float, above_zero("seconds until one request tries again", 3600)] = 5.0


class TlsSettings(Settings, frozen=True):
    """Certificates for outgoing connections; `ca_file`, in PEM format, is used instead of the system's."""

    ca_file: PemFile = None


ConnectTo = Annotated[str, Meta(pattern=r"^[^:\s]+:\d{1,5}:[^:\s]+:\d{1,5}\Z")]


class UpstreamSettings(Settings, frozen=True):
    """GraphQL API and its token endpoint, by default those of Nexar (contract graphql.md §3.1, §4.1)."""

    graphql_url: Annotated[str, Meta(pattern=Url, description="an http:// or https:// address")] = (
        "https://api.nexar.com/graphql"
    )
    token_url: Annotated[str, Meta(pattern=Url, description="an http:// or https:// address")] = (
        "https://identity.nexar.com/connect/token"  # noqa: S105 - an address
    )
    # The contract calls it optional (graphql.md §4.1): it may be empty.
    scope: Annotated[str, Meta(description="the scopes of the token, between blanks; may be empty")] = "supply.domain"
    site: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9]*\Z", description="small letters and digits, a letter first")] = (
        # The only site that v3 had; a field such as `octopart_url` has its name from it.
        "octopart"
    )
    connections: Annotated[int, limits("connections open at once", 1, 65535)] = 256
    timeouts: Annotated[TimeoutSettings, BLOCK] = TimeoutSettings()
    response_bytes: Annotated[
        int, limits("bytes of a response", 65_536, 1_073_741_824)
        # decompressed: a small body may grow a thousandfold
    ] = 33_554_432
    breaker: Annotated[BreakerSettings, BLOCK] = BreakerSettings()
    proxy: OutgoingProxy = None
    connect_to: Annotated[
        tuple[ConnectTo, ...], Meta(description="HOST:PORT:HOST:PORT, as of curl's --connect-to, in a list")
    ] = ()
    tls: Annotated[TlsSettings, BLOCK] = TlsSettings()

    @property
    def connections_to(self) -> dict[tuple[str, int], tuple[str, int]]:
        """Where to connect instead, by host and port."""
        pieces = [each.rsplit(":", 3) for each in self.connect_to]
        return {(host, int(port)): (other, int(other_port)) for host, port, other, other_port in pieces}


class SunsetSettings(Settings, frozen=True):
    """End of a migration: the last day of service (UTC), and what announces it. Without `date` v3 is deprecated only.

    In the block of an API key, None stands for the value of its application.
    """

    date: Annotated[datetime.date | None, Meta(description="a date (ISO 8601), such as 2027-06-30")] = None
    since: Annotated[datetime.date | None, Meta(description="a date (ISO 8601), not after `date`")] = None
    link: Annotated[
        Annotated[str, Meta(pattern=PageUrl)] | None, Meta(description="an http:// or https:// address of a page")
    ] = None

    def merged(self, inherited: "SunsetSettings | None") -> "SunsetSettings":
        """Return these settings, with those of `inherited` where they have none."""
        if inherited is None:
            return self
        return SunsetSettings(self.date or inherited.date, self.since or inherited.since, self.link or inherited.link)


_Sunset = SunsetSettings | Literal["never"] | None
_SUNSET_FORMS = "a date (ISO 8601), such as 2027-06-30, never, or a block with date, since and link"


class ApiKeySettings(Settings, frozen=True):
    """API key of a v3 client. Metrics, logs and usage reports show its `name`; the default is its position in the
    list."""

    key: Annotated[Digest, Meta(description="an API key in quotes, plain or sha256: with 64 hex digits")]
    name: Name = None
    parts: PartsOfKey = "unlimited"
    rate: Annotated[
        Annotated[int, Meta(ge=0, le=100_000)] | None, Meta(description="requests a second, 0 (off) to 100000")
    ] = None
    sunset: Annotated[_Sunset, Meta(description=_SUNSET_FORMS)] = None
    expires: Annotated[datetime.date | None, Meta(description="a date (ISO 8601), such as 2027-01-31")] = None

    @property
    def share(self) -> int | None:
        """Its share of the application's parts in per cent; None where `parts` is none."""
        return int(self.parts.rstrip("% ")) if isinstance(self.parts, str) and self.parts.endswith("%") else None


PLANS: dict[str, dict[str, Any]] = {
    "evaluation": {"parts": 100, "period": "lifetime", "features": "all"},
    "standard": {"parts": 2_000, "features": ()},
    "pro": {"parts": 15_000, "features": ()},
    "enterprise": {"features": "all"},
}
"""Settings of an application by its plan (contract graphql.md §6); sizes of standard and pro by third parties."""


class ApplicationSettings(Settings, frozen=True):
    """Nexar application, and the API keys of the v3 clients that it serves."""

    apikeys: Annotated[
        tuple[ApiKeySettings, ...],
        Meta(
            min_length=1,
            description="a list of API keys in quotes, plain or sha256: with 64 hex digits; each may be a block",
        ),
    ]
    client_id: Annotated[ClientId | None, Meta(description="the client id, env:NAME or file:PATH")] = None
    client_secret: Annotated[Secret | None, Meta(description="the secret in quotes, env:NAME or file:PATH")] = None
    country: Annotated[str, Meta(pattern=r"^[A-Z]{2}\Z", description="two capital letters (ISO 3166), such as US")] = (
        "US"
    )
    currency: Annotated[
        str, Meta(pattern=r"^[A-Z]{3}\Z", description="three capital letters (ISO 4217), such as USD")
    ] = "USD"
    plan: Annotated[
        Literal["evaluation", "standard", "pro", "enterprise"] | None,
        Meta(description="evaluation, standard, pro or enterprise"),
    ] = None
    features: Annotated[
        Literal["unknown", "all"] | tuple[Feature, ...],
        Meta(description=f"unknown, all, or a list of {', '.join(FEATURES)}"),
    ] = "unknown"
    parts: Parts = "unlimited"
    period: Annotated[Period, Meta(description="month or lifetime")] = "month"
    rate: Annotated[int, limits("requests a second", 0, 100_000, "off")] = 0
    sunset: Annotated[_Sunset, Meta(description=_SUNSET_FORMS)] = None

    def sunset_of(self, key: ApiKeySettings) -> SunsetSettings | None:
        """Return the sunset of one of the API keys; None if it has none."""
        inherited = None if self.sunset == "never" else self.sunset
        if key.sunset is None:
            return inherited
        return None if key.sunset == "never" else key.sunset.merged(inherited)

    def parts_of(self, key: ApiKeySettings) -> int | None:
        """Return the limit of one of the API keys; None if it has none of its own."""
        if key.share is not None:
            return int(self.parts) * key.share // 100  # a number: the loader refuses shares of unlimited parts
        return key.parts if isinstance(key.parts, int) else None

    @property
    def clients(self) -> dict[str, ApiKeySettings]:
        """The API keys by name; of duplicate names the last one."""
        # Positions from 1, as people count; the loader refuses duplicate names.
        return {key.name or str(place): key for place, key in enumerate(self.apikeys, 1)}

    @property
    def allowed_features(self) -> frozenset[str]:
        """The features that requests may ask for: all, unless they are listed."""
        return frozenset(FEATURES if isinstance(self.features, str) else self.features)


class TranslationSettings(Settings, frozen=True):
    """Options of the translation from v3 requests to GraphQL operations."""

    single_query: Annotated[
        Literal["supSearchMpn", "supMultiMatch"], Meta(description="supSearchMpn or supMultiMatch")
    ] = "supMultiMatch"


class CacheSettings(Settings, frozen=True):
    """Results and parts that the store keeps for a day."""

    bytes: Annotated[int, limits("bytes", 0, 1_000_000_000_000, "off")] = 268_435_456


class ClientSettings(Settings, frozen=True):
    """Record of who calls: requests by day, API key, endpoint and User-Agent, in the store."""

    days: Annotated[int, limits("days", 0, 396, "nothing is recorded")] = 396


class LogSettings(Settings, frozen=True):
    """Log on standard error."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="debug, info, warning or error")
    ] = "info"
    format: Annotated[Literal["json", "console"], Meta(description="json or console")] = "console"


class Config(Settings, frozen=True):
    """Whole configuration. `applications` maps a name to its application and is never empty."""

    applications: dict[str, ApplicationSettings]
    store: Annotated[
        StoreUrl,
        Meta(description=f"{', '.join(STORE_FORMS)}, or env:NAME or file:PATH of it"),
    ] = StoreUrl("sqlite")
    store_without_tls: Flag = False
    listen: ListenSettings = ListenSettings()
    admin: Literal[False] | AdminSettings = AdminSettings()
    upstream: Literal["sandbox"] | UpstreamSettings = "sandbox"
    uids: Annotated[File | None, Meta(description="a file like mappings/uids.yaml, from this file's folder")] = None
    translation: TranslationSettings = TranslationSettings()
    cache: CacheSettings = CacheSettings()
    clients: ClientSettings = ClientSettings()
    log: LogSettings = LogSettings()

    @property
    def reserved_files(self) -> int:
        """Open files of a worker beside the connections of its clients: for upstream connections, health checks and
        the store."""
        upstream = 0 if self.upstream == "sandbox" else self.upstream.connections
        return _OTHER_FILES + HEALTH_CHECK_CONNECTIONS + upstream
