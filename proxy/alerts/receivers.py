"""Receivers of alerts: one attempt to deliver an alert to a webhook or a command.

Requests are signed as the Standard Webhooks specification says (https://www.standardwebhooks.com): HMAC-SHA256 over
`id.timestamp.body`, so that neither a forged nor a recorded request is taken for an alert. No outcome names an address:
those of many webhooks are secrets.
"""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import os
import shutil
import signal
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import aiohttp
import structlog

import proxy
from proxy import config, errors
from proxy.alerts import alert as alerts
from proxy.kit.aiohttp_internals import connector
from proxy.upstream import http_post

# A command gets these of the service's variables and no others: the rest may hold credentials.
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")
VARIABLES = ("id", "event", "status", "severity", "title", "at", "machine")
RETRIED_STATUSES = {408, 409, 425, 429}  # of those below 500; the others are mistakes that a retry does not mend
_SERVICE = "the receiver"

log = structlog.get_logger()


class DeliveryOutcome(NamedTuple):
    """Outcome of one attempt: `reason` is empty where it was delivered. A `final` failure is not tried again;
    `retry_after` are the seconds that the receiver asked to wait."""

    reason: str = ""
    final: bool = False
    retry_after: int | None = None


def wants(receiver: config.WebhookSettings | config.CommandSettings, event: str) -> bool:
    return event == alerts.TEST or receiver.events == "all" or event in receiver.events


async def deliver(
    receiver: config.WebhookSettings | config.CommandSettings, alert: alerts.Alert, now: float
) -> DeliveryOutcome:
    """Try once to deliver an alert, at `now` in seconds since 1970. Raises nothing but a cancellation."""
    try:
        if isinstance(receiver, config.CommandSettings):
            return await _run(receiver, alert)
        return await _post(receiver, alert, now)
    except Exception as error:  # a mistake here must not leave an alert pending for ever
        log.error("alert attempt failed", alert=alert.id, exc_info=error)
        return DeliveryOutcome("an unexpected error; see the log")


def signature(secret: config.WebhookSecret, id_: str, timestamp: int, body: bytes) -> str:
    """Return the header webhook-signature."""
    signed = b".".join((id_.encode(), str(timestamp).encode(), body))
    return "v1," + base64.b64encode(hmac.digest(secret.key, signed, hashlib.sha256)).decode()


async def _post(webhook: config.WebhookSettings, alert: alerts.Alert, now: float) -> DeliveryOutcome:
    body, timestamp = alerts.encode(alert, webhook.body), int(now)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"v3bridge/{proxy.__version__}",
        "webhook-id": alert.id,
        # Of the attempt, not of the alert: a receiver refuses old timestamps, and a retry may come much later.
        "webhook-timestamp": str(timestamp),
    }
    if webhook.secret is not None:
        headers["webhook-signature"] = signature(webhook.secret, alert.id, timestamp, body)
    request = http_post.HttpRequest(webhook.url.reveal(), _SERVICE, body, headers, billed=False)
    try:
        # A session for each attempt: alerts are rare, and nothing has to be closed when the configuration changes.
        async with _session(webhook) as session:
            response = await http_post.post(session, request)
    except errors.ServerError as error:
        return DeliveryOutcome(error.message)
    except (ssl.SSLError, OSError):
        return DeliveryOutcome("the certificates in ca_file cannot be read", final=True)
    return _judge(response, now)


def _judge(response: http_post.HttpResponse, now: float) -> DeliveryOutcome:
    status = response.status
    if 200 <= status < 300:
        return DeliveryOutcome()
    if 300 <= status < 400:
        # The target would get the alert and its signature.
        return DeliveryOutcome(f"HTTP {status}: redirects are not followed", final=True)
    wait = http_post.retry_after_seconds(response.retry_after, now)
    return DeliveryOutcome(f"HTTP {status}", final=status < 500 and status not in RETRIED_STATUSES, retry_after=wait)


def _session(webhook: config.WebhookSettings) -> aiohttp.ClientSession:
    seconds = webhook.timeout_seconds
    trusted = True if webhook.ca_file is None else ssl.create_default_context(cafile=webhook.ca_file)
    return aiohttp.ClientSession(
        connector=connector.AttemptConnector(seconds, limit=1, ssl=trusted),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=seconds, sock_read=seconds),
        # Never upstream.proxy: receivers are often inside of the network that a proxy leads out of.
        proxy=None if webhook.proxy is None else webhook.proxy.reveal(),
    )


async def _run(command: config.CommandSettings, alert: alerts.Alert) -> DeliveryOutcome:
    """Run a program with the alert on its standard input. It is killed with all of its children after its time."""
    # A file without a name and not a pipe: a program may leave it unread without blocking the service.
    with tempfile.TemporaryFile() as content:
        content.write(alerts.encode(alert))
        content.seek(0)
        try:
            process = await asyncio.create_subprocess_exec(
                *command.command,
                stdin=content,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env=_environment(alert, os.environ),
                start_new_session=True,  # a group of its own, which can be killed as a whole
            )
        except OSError as error:
            return DeliveryOutcome(f"the program cannot be started: {error.strerror}", final=True)
    try:
        async with asyncio.timeout(command.timeout_seconds):
            await process.wait()
    except TimeoutError:
        return DeliveryOutcome(f"the program was killed after {command.timeout_seconds:g} s")
    finally:
        # Only before it has been waited for: afterwards its number may be that of another process.
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    code = process.returncode or 0
    if code < 0:
        return DeliveryOutcome(f"the program ended by {signal.Signals(-code).name}")
    return DeliveryOutcome(f"the program ended with exit code {code}") if code else DeliveryOutcome()


def _environment(alert: alerts.Alert, environ: Mapping[str, str]) -> dict[str, str]:
    inherited = {name: environ[name] for name in INHERITED if name in environ}
    # A title may hold any text, but a variable of the environment ends at a null byte.
    named = {f"V3BRIDGE_ALERT_{name.upper()}": str(getattr(alert, name)).replace("\0", "") for name in VARIABLES}
    return inherited | named


def mistakes(settings: config.AlertSettings) -> Iterator[tuple[str, str]]:
    """Yield the name of each receiver that cannot work, and why. Sends nothing."""
    for name, receiver in settings.receivers.items():
        if isinstance(receiver, config.CommandSettings):
            if shutil.which(receiver.command[0]) is None:
                yield name, f"the program {receiver.command[0]} cannot be found, or not be run by this user"
        elif receiver.ca_file is not None:
            try:
                ssl.create_default_context(cafile=receiver.ca_file)
            except (ssl.SSLError, OSError):
                yield name, f"{receiver.ca_file} holds no certificate in PEM form"
