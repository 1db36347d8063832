"""State of the service for operators: is it ready, and why not; parts used and left; who calls; failures.

It is read from the store, so that any worker and machine shows the same. Only the checks of readiness, the circuit
breaker and the process are those of the worker that responds.
"""

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec

import proxy
from proxy import config, errors
from proxy.config import secret
from proxy.config.secret import FINGERPRINT
from proxy.explain import Explainer
from proxy.gateway.core import Gateway, StoredState
from proxy.kit import rfc3339
from proxy.model import Seen
from proxy.traffic.v3_request import V3Request, parse_target

CLIENTS_MAX = 50  # that called last
DAYS = 31  # of usage: all of a month
RATE_DAYS = 7  # whose mean is the present rate, today among them
FAR_DAYS = 3_650  # nobody plans for longer
Row = dict[str, Any]


async def read(gateway: Gateway, explained: str = "") -> Row:
    """Return the state of the service; the last failure whose request id is `explained` has its explanation.
    `store_failure` says why nothing is known from the store. Times are RFC 3339 in UTC."""
    now, reasons, store_failure = gateway.clock.now(), await gateway.readiness.failures(), None
    stored: Row = {name: [] for name in ("tokens", "usage", "clients", "unknown_keys", "failures")}
    try:
        stored = {
            "tokens": await _tokens(gateway),
            "usage": await _usage(gateway.state, now),
            "clients": clients(await gateway.state.clients())[:CLIENTS_MAX],
            "unknown_keys": [*map(_unknown_key, await gateway.state.unknown_keys())],
            "failures": [*map(_failure, await gateway.state.failures())],
        }
    except errors.StoreUnavailable as error:
        store_failure = error.message
    for failure in stored["failures"]:
        if failure["request"] == explained:
            failure["explanation"] = await _explanation(gateway, failure)
            break
    return stored | {
        "ready": not reasons,
        "reasons": reasons,
        "version": proxy.__version__,
        "at": rfc3339(now),
        "pid": os.getpid(),
        "uptime_seconds": round(now - gateway.process.started, 1),
        "upstream": urlsplit(gateway.upstream.graphql_url).netloc,
        "breakers": {"graphql": gateway.breaker.state},
        "store": gateway.settings.store.shown,
        "store_failure": store_failure,
    }


def another(found: Row, settings: config.Config) -> str:
    """Return which other v3bridge a state is of, as words for a message; "" if it may be of the service of these
    settings, which has one of its applications, and its upstream."""
    names = sorted({row["application"] for row in found["tokens"]})
    ours = settings.upstream if settings.upstream == "sandbox" else urlsplit(settings.upstream.graphql_url).netloc
    hosts = {ours, found["upstream"]}
    is_elsewhere = len(hosts) > 1 and not all(
        each == "sandbox" or secret.is_loopback(urlsplit(f"//{each}").hostname or "") for each in hosts
    )
    if not is_elsewhere and (not names or not settings.applications.keys().isdisjoint(names)):
        return ""
    return f"another v3bridge, with the applications {', '.join(names)} and the upstream {found['upstream']}"


async def _tokens(gateway: Gateway) -> list[Row]:
    """Return until when the access token of each application is valid, null without one, and why the last request for
    one failed."""
    rows = []
    for name, application in gateway.applications.by_name.items():
        expires, refusal = await gateway.tokens.stored(application.credentials)
        rows.append({"application": name, "expires_at": expires and rfc3339(expires), "refusal": refusal})
    return rows


async def _usage(state: StoredState, now: float) -> list[Row]:
    """Return the usage of each application and API key with its parts by day, the present rate, and the day (UTC) on
    which the rest ends at that rate, null where nothing is limited, or used, or the rest lasts to the reset."""
    by_day = await state.parts_by_day(DAYS)
    rows = []
    for row in await state.usage():
        days = by_day.get(row.name, {})
        rate = parts_a_day(days, now)
        ends_on = None
        if row.remaining is not None and rate and row.remaining / rate <= FAR_DAYS:
            end = rfc3339(now + row.remaining / rate * 86_400)
            ends_on = end[:10] if row.resets_at is None or end < row.resets_at else None
        rows.append(msgspec.to_builtins(row) | {"days": days, "parts_a_day": round(rate, 1), "ends_on": ends_on})
    return rows


def parts_a_day(days: Mapping[str, int], now: float) -> float:
    """Return the mean of the last days, from the first one with usage on, and of a day at least."""
    today = datetime.fromtimestamp(now, UTC).date()
    first = (today - timedelta(RATE_DAYS - 1)).isoformat()
    recent = {date.fromisoformat(day): parts for day, parts in days.items() if day >= first and parts}
    if not recent:
        return 0.0
    passed = (today - min(recent)).days + now % 86_400 / 86_400
    return sum(recent.values()) / max(1.0, passed)


def clients(seen: Iterable[Seen]) -> list[Row]:
    """Return the programs that called, the last one first: endpoints, and what they lost. Names are empty without a
    valid API key."""
    found: dict[tuple[str, ...], Row] = {}
    for each in seen:
        names = {"application": each.application, "key": each.key, "user_agent": each.user_agent}
        first: Row = {"endpoints": [], "unsupported": [], "requests": 0, "last_seen": rfc3339(each.last)}
        client = found.setdefault((*names.values(),), names | first)
        client["requests"] += each.requests
        uses = each.detail.split(", ") if each.detail else []
        for name, values in (("endpoints", [each.endpoint]), ("unsupported", uses)):
            client[name] += [value for value in values if value not in client[name]]
    return [*found.values()]


def _unknown_key(seen: Seen) -> Row:
    """Return an API key that no application has, by the first hex digits of its SHA-256."""
    names = {"fingerprint": seen.key[:FINGERPRINT], "address": seen.endpoint, "user_agent": seen.user_agent}
    return names | {"last_seen": rfc3339(seen.last), "requests": seen.requests}


def _failure(seen: Seen) -> Row:
    detail: Row = msgspec.json.decode(seen.detail)
    names = {"at": rfc3339(seen.last), "route": seen.endpoint, "application": seen.application, "key": seen.key}
    return detail | names


async def _explanation(gateway: Gateway, failure: Row) -> Row:
    """Return what `v3bridge explain` says of a failed request; nothing where its target was not kept, or its key is
    gone."""
    names = failure["application"], failure["key"]
    clients = gateway.applications.clients.values()
    client = next((each for each in clients if (each.application.name, each.key) == names), None)
    if not failure["target"] or client is None:
        return {}
    path, query, _ = parse_target(failure["target"])
    explainer = Explainer(gateway.settings, gateway.projections)
    explained, _ = await explainer.explain(V3Request(path, query), client, None, failure["method"])
    return msgspec.to_builtins(explained)  # type: ignore[no-any-return]
