"""Settings of the service: types, defaults and limits; docs/settings.md says what they are for.

`loader.py` reads the YAML file and checks several settings together. A description completes the words "it accepts" of
an error message; a choice of words has none of its own.
"""

import datetime
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct

from proxy.config import secret
from proxy.config.secret import ClientId, Digest, Secret, StoreUrl, digest, hex_digest

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

# ISO 4217; of others Nexar would have no rate, but may bill the parts.
CURRENCIES = tuple(
    """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP
    CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR
    ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT
    MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD
    SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES
    VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG
    """.split()  # noqa: SIM905  (one on each line would be 155 lines)
)
PARTS_MAX = 1_000_000_000_000
HEALTH_CHECK_CONNECTIONS = 64  # accepted beyond listen.connections, so that health checks get a response
UPSTREAM_CONNECTIONS = 256  # open at once
CONNECT_SECONDS = 5.0  # to open one: name lookup, TCP and TLS, with an outgoing proxy
STOP_SECONDS = 10.0  # for requests under way when the service stops
RESERVED_FILES = HEALTH_CHECK_CONNECTIONS + UPSTREAM_CONNECTIONS + 64  # of a worker, beside its clients' connections


Flag = Annotated[bool, Meta(description="true or false")]
Host = Annotated[str, Meta(pattern=r"^\S+\Z", description="a host name or an address")]
Port = Annotated[int, Meta(ge=0, le=65535, description="a TCP port, 0 (takes a free one) to 65535")]
Limit = Annotated[int, Meta(ge=0, le=PARTS_MAX)]
Parts = Annotated[Literal["unlimited"] | Limit, Meta(description="unlimited, or a whole number of parts such as 1000")]
# A share in per cent is that of the application's limit.
PartsOfKey = Annotated[
    Annotated[str, Meta(pattern=r"^(unlimited|([1-9][0-9]?|100) ?%)\Z")] | Limit,
    Meta(description="unlimited, a whole number of parts such as 1000, or a share of the application's such as 30%"),
]
Period = Literal["month", "lifetime"]
Plan = Literal["evaluation", "standard", "pro", "enterprise"]
Rate = Annotated[int, Meta(ge=0, le=100_000, description="requests a second, 0 (off) to 100000")]
# No user, query or fragment: addresses are shown in logs, and paths are appended to some.
Url = Annotated[str, Meta(pattern=r"^https?://[^\s/@?#]+(/[^\s@?#]*)?\Z", description="an http:// or https:// address")]
Date = Annotated[datetime.date, Meta(description="a date (ISO 8601), such as 2027-06-30")]


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Base class of all blocks of settings, also those of a comparison."""


class ListenSettings(Settings, frozen=True):
    """Listening address, worker processes, and limits of client connections."""

    host: Host = "127.0.0.1"
    port: Port = 8080
    workers: Annotated[int, Meta(ge=1, le=256, description="processes, 1 to 256")] = 1
    connections: Annotated[int, Meta(ge=1, le=1_000_000, description="connections, 1 to 1000000")] = 1000
    failed_auth_per_minute: Annotated[int, Meta(ge=0, le=1000, description="wrong keys a minute, 0 (off) to 1000")] = 20
    trusted_proxies: Annotated[
        tuple[secret.Network, ...], Meta(description="a list of addresses or networks, such as 10.0.0.0/8")
    ] = ()
    sheet: Flag = False


class AdminSettings(Settings, frozen=True):
    """The operators' port: its listening address, and the token that its status needs."""

    host: Host = "127.0.0.1"
    port: Port = 8088
    token: Annotated[
        secret.OperatorsToken | None,
        Meta(description="a token of 16 characters or more in quotes, env:NAME or file:PATH"),
    ] = None


class UpstreamSettings(Settings, frozen=True):
    """GraphQL API and its token endpoint, by default those of Nexar (contract graphql.md §3.1, §4.1)."""

    graphql_url: Url = "https://api.nexar.com/graphql"
    token_url: Url = "https://identity.nexar.com/connect/token"  # noqa: S105 - an address
    # The only site that v3 had; a field such as `octopart_url` has its name from it.
    site: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9]*\Z", description="small letters and digits, a letter first")] = (
        "octopart"
    )
    # Of a v3 request, not of one attempt: a client waits no longer, also with a retry.
    total_seconds: Annotated[float, Meta(gt=0, le=3600, description="seconds, above 0 up to 3600")] = 30.0
    proxy: Annotated[
        secret.ProxyAddress | None,
        Meta(description="an http:// address, with name:password@ where it requires them, env:NAME or file:PATH"),
    ] = None
    # The first host is a name: only these are resolved.
    connect_to: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[^:\s]*[^\d.:\s][^:\s]*:\d{1,5}:[^:\s]+:\d{1,5}\Z")], ...],
        Meta(description="NAME:PORT:HOST:PORT, as of curl's --connect-to, in a list"),
    ] = ()

    @property
    def connections_to(self) -> dict[tuple[str, int], tuple[str, int]]:
        """Where to connect instead, by host and port."""
        pieces = [each.rsplit(":", 3) for each in self.connect_to]
        return {(host, int(port)): (other, int(other_port)) for host, port, other, other_port in pieces}


class SunsetSettings(Settings, frozen=True):
    """Announced end of service: its last day (UTC), and a page that says how to go on."""

    date: Date
    # ASCII without quotes and angle brackets, because it is written into a response header. The default is the
    # vendor's guide for those who leave v3.
    link: Annotated[
        str,
        Meta(
            pattern=r"^https?://[A-Za-z0-9._~:/?#!$&'()*+,;=%\[\]-]+\Z",
            description="an http:// or https:// address of a page",
        ),
    ] = "https://docs.nexar.com/guides/supply-api/migration-from-octopart-v3-api"


Sunset = SunsetSettings | None


class ApiKeySettings(Settings, frozen=True):
    """API key of a v3 client. Metrics, logs and usage show its `name`, by default its position in the list."""

    key: Annotated[Digest, Meta(description="an API key in quotes, plain or sha256: with 64 hex digits")]
    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]+\Z", description="letters, digits, - _ and .")] | None = None
    parts: PartsOfKey = "unlimited"
    rate: Rate | None = None
    sunset: Sunset = None
    expires: Date | None = None


PLANS: dict[str, dict[str, Any]] = {
    "evaluation": {"parts": 100, "period": "lifetime", "features": "all"},
    "standard": {"parts": 2_000, "features": ()},
    "pro": {"parts": 15_000, "features": ()},
    "enterprise": {"features": "all"},
}
"""Settings of an application by its plan (contract graphql.md §6); sizes of standard and pro by third parties."""


class ApplicationSettings(Settings, frozen=True):
    """Nexar application, and the API keys of the v3 clients that it serves: at least one."""

    apikeys: Annotated[
        tuple[ApiKeySettings, ...],
        Meta(description="a list of API keys in quotes, plain or sha256: with 64 hex digits; each may be a block"),
    ] = ()
    client_id: Annotated[ClientId | None, Meta(description="the client id, env:NAME or file:PATH")] = None
    client_secret: Annotated[Secret | None, Meta(description="the secret in quotes, env:NAME or file:PATH")] = None
    country: Annotated[str, Meta(pattern=r"^[A-Z]{2}\Z", description="two capital letters (ISO 3166), such as US")] = (
        "US"
    )
    currency: Annotated[
        str,
        Meta(
            pattern=rf"^({'|'.join(CURRENCIES)})\Z",
            description="a currency of ISO 4217, in capital letters, such as USD",
        ),
    ] = "USD"
    plan: Plan | None = None
    features: Annotated[
        Literal["unknown", "all"] | tuple[Feature, ...],
        Meta(description=f"unknown, all, or a list of {', '.join(FEATURES)}"),
    ] = "unknown"
    parts: Parts = "unlimited"
    period: Period = "month"
    rate: Rate = 0
    sunset: Sunset = None

    @property
    def clients(self) -> dict[str, tuple[ApiKeySettings, int | None]]:
        """The API keys by name, each with the limit of its parts, None if it has none of its own; of duplicate names
        the last one."""
        found: dict[str, tuple[ApiKeySettings, int | None]] = {}
        # Positions from 1, as people count; the loader refuses duplicate names.
        for place, key in enumerate(self.apikeys, 1):
            limit = key.parts if isinstance(key.parts, int) else None
            if isinstance(key.parts, str) and key.parts.endswith("%"):
                # A number: the loader refuses shares of unlimited parts.
                limit = int(self.parts) * int(key.parts.rstrip("% ")) // 100
            found[key.name or str(place)] = key, limit
        return found

    @property
    def allowed_features(self) -> frozenset[str]:
        """The features that requests may ask for: all, unless they are listed."""
        return frozenset(FEATURES if isinstance(self.features, str) else self.features)


class TranslationSettings(Settings, frozen=True):
    """Options of the translation from v3 requests to GraphQL operations."""

    single_query: Literal["supSearchMpn", "supMultiMatch"] = "supMultiMatch"


class CacheSettings(Settings, frozen=True):
    """Results and parts that the store keeps for a day."""

    bytes: Annotated[int, Meta(ge=0, le=1_000_000_000_000, description="bytes, 0 (off) to 1000000000000")] = 268_435_456


class LogSettings(Settings, frozen=True):
    """Log on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["json", "console"] = "console"


class Config(Settings, frozen=True):
    """Whole configuration. `applications` maps a name to its application and is never empty."""

    applications: Annotated[
        dict[str, ApplicationSettings], Meta(min_length=1, description="at least one block, by a name of your own")
    ]
    store: Annotated[
        StoreUrl,
        Meta(description="memory:, sqlite, sqlite:PATH, redis://…, rediss://…, unix://…, env:NAME or file:PATH"),
    ] = StoreUrl("sqlite")
    store_without_tls: Flag = False
    listen: ListenSettings = ListenSettings()
    admin: Annotated[Literal[False] | AdminSettings, Meta(description="false, or a block of host, port and token")] = (
        AdminSettings()
    )
    upstream: Annotated[
        Literal["sandbox"] | UpstreamSettings, Meta(description="sandbox, nexar, or a block of what differs from it")
    ] = "sandbox"
    uids: Annotated[secret.File | None, Meta(description="a file like mappings/uids.yaml, from this file's folder")] = (
        None
    )
    translation: TranslationSettings = TranslationSettings()
    cache: CacheSettings = CacheSettings()
    log: LogSettings = LogSettings()
