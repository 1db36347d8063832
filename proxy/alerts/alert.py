"""An alert: what receivers get, as JSON or as one line of text.

The fields are stable: `version` is raised when one changes its meaning or goes. `text` is what chat services show; a
client may choose its own user agent, which must not become a mention or a link there.
"""

import json
import secrets
import socket
from typing import Any, Final, Literal

import msgspec

import proxy
from proxy import config
from proxy.kit.wording import rfc3339

VERSION = 1
TEST: Final = "test"

Severity = Literal["info", "warning", "critical"]
Status = Literal["firing", "resolved"]

MEANINGS: dict[str, str] = {
    "quota.threshold": "the usage of a quota account has reached a share of its limit",
    "quota.exhausted": "requests are refused, because the quota of an account is used",
    "quota.forecast": "the parts of a quota account run out before its period ends, at the present rate",
    "breaker.open": "an upstream service failed repeatedly, so that no requests are sent to it for some seconds",
    "token.refused": "the credentials of an application, or its tokens, are not accepted",
    "token.limit": "the rate limit of token requests is exceeded",
    "token.failing": "token requests failed three times in a row or more",
    "store.unavailable": "the store cannot be written: usage is kept in memory, quotas with a limit cannot be reserved",
    "schema.drift": "the upstream's schema no longer has what the mappings read",
    "client.new": "an API key was used by a program that had not used it before",
}

# Signs that chat services read as mentions, links and markup; the last two open and close links in Markdown.
_HARMLESS = str.maketrans({"<": "‹", ">": "›", "@": "＠", "`": "'", "*": "∗", "[": "(", "]": ")"})


class Alert(msgspec.Struct, frozen=True):
    """One report of a condition. `id` is the same for each attempt to deliver it; `at` is RFC 3339 in UTC.

    `title` is one sentence. `details` are those of the event (docs/how-to/alerts.md has an example of each).
    """

    version: int
    id: str
    event: str
    status: Status
    severity: Severity
    title: str
    text: str
    details: dict[str, Any]
    at: str
    machine: str
    service: str = "v3bridge"
    service_version: str = proxy.__version__


def make(
    id_: str,
    event: config.AlertEvent | Literal["test"],
    severity: Severity,
    title: str,
    details: dict[str, Any],
    *,
    now: float,
    status: Status = "firing",
) -> Alert:
    """Return an alert. `now` is in seconds since 1970."""
    machine = socket.gethostname()
    label = "resolved" if status == "resolved" else severity
    text = f"v3bridge on {machine}: {label}: {title}".translate(_HARMLESS)
    return Alert(VERSION, id_, event, status, severity, title, text, details, rfc3339(now), machine)


def test(now: float) -> Alert:
    """Return an alert that tells a receiver only that it works."""
    return make(new_id(), TEST, "info", "This is a test: alerts reach this receiver.", {}, now=now)


def new_id() -> str:
    return f"msg_{secrets.token_hex(12)}"


def encode(alert: Alert, body: Literal["json", "text"] = "json") -> bytes:
    """Return the body that is sent: all fields, or `text` alone for services that refuse unknown fields."""
    return json.dumps({"text": alert.text}).encode() if body == "text" else msgspec.json.encode(alert)
