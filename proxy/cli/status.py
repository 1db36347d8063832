"""`v3bridge status`: the running service on one screen, as its admin interface has it."""

import json
import urllib.request
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proxy import errors
from proxy.cli import option_fields, shown
from proxy.kit import shipped
from proxy.kit.wording import duration

if TYPE_CHECKING:
    from proxy.workers.control import ServiceDescription

SECONDS = 10.0  # that the service may take to respond
CLIENTS = 5  # that are listed

Page = dict[str, Any]


def status(
    config_file: option_fields.ConfigFile = None,
    as_json: option_fields.AsJson = False,
) -> None:
    """Print the state of the running service: ready or not, parts used and left, who calls, cache hits, alerts.

    The exit code is 0, 1 if it is not ready, and 2 if no service was found.
    """
    from proxy.workers import control

    file = config_file or shipped.path("config.yaml")
    services = control.running(file)
    if not services:
        raise errors.ConfigError(
            f"no service of this user runs with {file.absolute()}; name its configuration with --config, or be its user"
        )
    pages = [(service, _page(service, "overview"), _page(service, "clients")) for service in services]
    if as_json:
        shown.print_json(
            [{"url": service.url, "overview": overview, "clients": callers} for service, overview, callers in pages]
        )
    else:
        for service, overview, callers in pages:
            _show(service, overview, callers)
    if not all(_is_ready(overview) for _, overview, _ in pages):
        raise typer.Exit(1)


def _page(service: "ServiceDescription", name: str) -> Page:
    """Return a page of the admin interface as JSON. Raises ConfigError."""
    if not service.admin:
        raise errors.ConfigError(
            f"the service at {service.url} has no admin interface, which has its state: remove `admin: false`"
        )
    request = urllib.request.Request(  # noqa: S310 - the address is that of the service
        f"{service.admin}/{name}.json", headers={"Authorization": f"Bearer {service.token}"}
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=SECONDS) as response:
            page: Page = json.load(response)
    except (OSError, ValueError) as error:
        raise errors.ConfigError(f"the admin interface at {service.admin} cannot be read: {error}") from error
    return page


def _is_ready(overview: Page) -> bool:
    return not any(check["failure"] for check in overview["checks"])


def _show(service: "ServiceDescription", overview: Page, callers: Page) -> None:
    console = shown.table_console()
    state = ("ready", "green") if _is_ready(overview) else ("not ready", "red")
    running = f" at {service.url}/v3, version {overview['version']}, up {duration(overview['uptime_seconds'])}"
    console.print(Text.assemble(state, running))
    for check in overview["checks"]:
        if check["failure"]:
            console.print(shown.visible(f"  {check['name']}: {check['failure']}", "red"))
    console.print(_traffic(overview))
    if overview["store_failure"]:
        console.print(shown.visible(f"parts: unknown, {overview['store_failure']}", "red"))
    else:
        console.print(_parts(overview["parts"]))
    console.print(_clients(callers))
    _print_conditions(console, overview)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left", no_wrap=number > 0)
    return table


def _traffic(overview: Page) -> Table:
    table = _table("", "requests/s", "5xx", "4xx", "p50 ms", "p99 ms", "cache hits", "upstream calls", "failed")
    for name, window in (("last minute", overview["minute"]), ("last hour", overview["hour"])):
        milliseconds = ("" if window[at] is None else f"{window[at] * 1000:.0f}" for at in ("p50", "p99"))
        hits = "" if window["hit_ratio"] is None else f"{100 * window['hit_ratio']:.0f} %"
        counts = (f"{window[at]:,}" for at in ("upstream_operations", "failed_upstream_operations"))
        errors_ = (f"{window[at]:,}" for at in ("failed", "refused"))
        table.add_row(name, f"{window['requests_per_second']:g}", *errors_, *milliseconds, hits, *counts)
    return table


def _parts(rows: list[Page]) -> Table:
    table = _table("parts of", "today", "month", "used of limit", "left", "runs out")
    for row in rows:
        usage = row["usage"]
        limit = "unlimited" if usage["limit"] is None else f"{usage['limit']:,}"
        left = "" if usage["remaining"] is None else f"{usage['remaining']:,}"
        end = "exhausted" if usage["exhausted_until"] else (usage["runs_out_at"] or "")[:10]
        table.add_row(
            usage["application"], f"{row['today']:,}", f"{row['month']:,}", f"{usage['used']:,} of {limit}", left, end
        )
    return table


def _clients(callers: Page) -> Table | Text:
    listed = callers["clients"][:CLIENTS]
    if not listed:
        from proxy.gateway.callers import INTERVAL_SECONDS

        # What a service that has just started has counted is not written yet.
        return Text(f"no client has called since {callers['first_day']}, but for the last {INTERVAL_SECONDS:.0f} s")
    table = _table(f"clients, {callers['days']} days", "requests", "today", "parts", "last seen")
    for client in listed:
        seen = (client["last_seen"] or "")[:10]
        counts = (f"{client[at]:,}" for at in ("requests", "today", "parts"))
        table.add_row(shown.visible(f"{client['application']}/{client['key']}"), *counts, seen)
    more = callers["totals"]["clients"] - len(listed)
    if more > 0:
        table.add_row(f"and {more:,} more")
    return table


def _print_conditions(console: Console, overview: Page) -> None:
    broken = [f"{name} {state}" for name, state in overview["breakers"].items() if state != "closed"]
    if broken:
        console.print(Text(f"circuit breakers: {', '.join(broken)}", style="red"))
    for condition in overview["conditions"]:
        console.print(shown.visible(f"alert: {condition['title']}", "yellow"))
    if not broken and not overview["conditions"]:
        console.print("no alert is open, and all circuit breakers are closed", highlight=False)
