"""Settings of alerts: which conditions are reported, and the webhooks and commands that receive them."""

from typing import Annotated, Literal, get_args

from msgspec import Meta

from proxy.config.base import Flag, Name, OutgoingProxy, PemFile, Settings, above_zero, limits
from proxy.config.secret import WebhookSecret, WebhookUrl

AlertEvent = Literal[
    "quota.threshold",
    "quota.exhausted",
    "quota.forecast",
    "breaker.open",
    "token.refused",
    "token.limit",
    "token.failing",
    "store.unavailable",
    "schema.drift",
    "client.new",
]
ALERT_EVENTS: tuple[AlertEvent, ...] = get_args(AlertEvent)

_Events = Annotated[
    Literal["all"] | tuple[AlertEvent, ...], Meta(description=f"all, or a list of {', '.join(ALERT_EVENTS)}")
]
# Long enough for a receiver that starts up, short enough that a pending alert is tried again soon.
_Timeout = Annotated[float, above_zero("seconds", 60)]


class WebhookSettings(Settings, frozen=True):
    """Receiver of alerts over HTTP; its `name` is shown instead of its address. Without a secret nothing is signed."""

    url: Annotated[
        WebhookUrl, Meta(description="an https:// address, or http:// of this machine, env:NAME or file:PATH")
    ]
    name: Name = None
    secret: Annotated[
        WebhookSecret | None, Meta(description="whsec_ and 24 to 64 bytes in base64, env:NAME or file:PATH")
    ] = None
    events: _Events = "all"
    body: Annotated[Literal["json", "text"], Meta(description="json or text")] = "json"
    timeout_seconds: _Timeout = 10.0
    proxy: OutgoingProxy = None
    ca_file: PemFile = None


class CommandSettings(Settings, frozen=True):
    """Program that is run for each alert, with the alert's JSON as its standard input."""

    command: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(min_length=1, description="a list: the program and its arguments"),
    ]
    name: Name = None
    events: _Events = "all"
    timeout_seconds: _Timeout = 10.0


class AlertSettings(Settings, frozen=True):
    """Alerts; off without webhooks and commands."""

    thresholds: Annotated[
        tuple[Annotated[int, Meta(ge=1, le=100)], ...], Meta(description="a list of per cent of a limit, 1 to 100")
    ] = (50, 80, 95)
    repeat_seconds: Annotated[float, limits("seconds", 60, 604_800)] = 3600.0
    resolved: Flag = True
    webhooks: Annotated[tuple[WebhookSettings, ...], Meta(description="a list of blocks with url")] = ()
    commands: Annotated[tuple[CommandSettings, ...], Meta(description="a list of blocks with command")] = ()

    @property
    def receivers(self) -> dict[str, WebhookSettings | CommandSettings]:
        """Webhooks and commands by name; one without a name has its place: webhook-1, command-1."""
        # Positions from 1, as people count; the loader refuses duplicate names.
        return {
            **{each.name or f"webhook-{place}": each for place, each in enumerate(self.webhooks, 1)},
            **{each.name or f"command-{place}": each for place, each in enumerate(self.commands, 1)},
        }


class SchemaCheckSettings(Settings, frozen=True):
    """Comparison of the upstream's schema with the part that the mappings read."""

    hours: Annotated[float, limits("hours between two checks", 0, 720, "off")] = 24.0
