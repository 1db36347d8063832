"""Tables of `v3bridge usage --clients`: a row per client, and the endpoints and user agents of one."""

from collections import defaultdict
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from proxy.cli import shown

if TYPE_CHECKING:
    from proxy.gateway.client_report import CallerUsage, ClientReport, ClientUsage

_AGENTS, _AGENT_MIN = 3, 12  # user agents of a client that the table names, and characters that they have at least
_GAP = 2  # characters between two columns
_COUNTS = ("requests", "errors", "parts")
_DETAILS = ("hits", "mean ms")


def show(report: "ClientReport", *, unused: bool, details: bool) -> None:
    """Print a row per client, and with `details` their endpoints and user agents. `unused`: only clients without
    requests are in the report."""
    console = shown.table_console()
    if unused and not report.clients:
        console.print(f"Every API key was used from {report.first_day} to {report.last_day}.", highlight=False)
    elif report.clients:
        console.print(_client_table(report, console.width))
    if details:
        for client in report.clients:
            console.print(_caller_table(client))
            if client.unsupported:
                console.print(unsupported_table([client]))
    console.print(_completeness(report), highlight=False, soft_wrap=False)


def _client_table(report: "ClientReport", width: int) -> Table:
    rows: list[tuple[str | Text, ...]] = [
        (_named(client), *_numbers(client), (client.last_seen or "never")[:10], _agents(client))
        for client in report.clients
    ]
    columns = ("client", *_COUNTS, "last seen")
    # What is left of the line: a table that is too wide would be cut in its other columns, too.
    left = width - sum(
        max(len(name), *(_width(row[place]) for row in rows)) + _GAP for place, name in enumerate(columns)
    )
    table = shown.plain_table(f"Clients from {report.first_day} to {report.last_day}")
    shown.add_columns(table, *columns, right=_COUNTS)
    table.add_column("user agents", no_wrap=True, overflow="ellipsis", max_width=max(_AGENT_MIN, left))
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return table


def _named(client: "ClientUsage") -> Text:
    state = _client_state(client)
    return Text.assemble(client.name, *([("\n" + state, "yellow")] if state else []))


def _numbers(row: "ClientUsage | CallerUsage") -> tuple[str, str, str]:
    return f"{row.requests:,}", f"{row.errors:,}", f"{row.parts:,}"


def _width(cell: str | Text) -> int:
    return max((len(line) for line in str(cell).splitlines()), default=0)


def _client_state(client: "ClientUsage") -> str:
    """Say in a few words what an operator has to know of an API key."""
    if client.key is not None and not client.configured:
        return "not configured"
    states = [f"{'ended' if client.sunset_passed else 'sunset'} {client.sunset}"] if client.sunset else []
    if client.expires:
        states.append(f"{'expired' if client.expired else 'expires'} {client.expires}")
    return "\n".join(states)


def _agents(client: "ClientUsage") -> str:
    """Name the user agents with most requests, one on a line."""
    names = client.user_agents
    return "\n".join([*names[:_AGENTS], f"and {len(names) - _AGENTS} more"] if len(names) > _AGENTS else names)


def _caller_table(client: "ClientUsage") -> Table:
    """Table of the endpoints below each user agent, which may be long."""
    table = shown.plain_table(f"Requests of {client.name}")
    numbers, first = (*_COUNTS, *_DETAILS), "user agent and endpoint"
    shown.add_columns(table, first, *numbers, "last seen", right=numbers, fold=(first,))
    agents: dict[str, list[CallerUsage]] = defaultdict(list)
    for caller in client.callers:
        agents[caller.user_agent or "(none)"].append(caller)
    for agent, callers in agents.items():
        table.add_row(Text(agent, style="bold"))
        for caller in callers:
            details = f"{caller.hits:,}", f"{caller.mean_ms:,.1f}", caller.last_seen[:10]
            table.add_row(f"  {caller.endpoint}", *_numbers(caller), *details)
    return table


def unsupported_table(clients: "list[ClientUsage]") -> Table:
    """Table of the unsupported uses of clients."""
    table = shown.plain_table("Parameters that are ignored, and fields without source, in live requests")
    columns = ("client", "name", "requests", "first seen", "last seen")
    shown.add_columns(table, *columns, right=("requests",), fold=("name",))
    for client in clients:
        for use in client.unsupported:
            table.add_row(client.name, Text(use.name), f"{use.requests:,}", use.first_seen[:10], use.last_seen[:10])
    return table


def _completeness(report: "ClientReport") -> str:
    if report.recorded_since is None:
        return "Nothing is recorded yet: no request was sent, or the service runs with another store."
    counts = "Counts are written every 10 seconds."
    if report.recorded_since[:10] > report.first_day:
        return f"Recorded since {report.recorded_since[:10]}: API keys may have been used before. {counts}"
    return counts
