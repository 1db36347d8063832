"""What `v3bridge usage` prints. The figures come from gateway/usage.py."""

from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proxy.cli.shown import FILE_WIDTH

if TYPE_CHECKING:
    from proxy.gateway.quota.usage import UsageRow

BAR = 20  # characters that stand for a whole limit

_WARM, _HOT = 80.0, 95.0  # per cent from which a bar changes its colour


def table(rows: "list[UsageRow]") -> None:
    """A line an account, an application's own before its keys'."""
    shown = Table(title="Parts spent")
    for name in ("application", "key", "period"):
        shown.add_column(name, no_wrap=True)
    for name in ("used", "in doubt", "limit", "left"):
        shown.add_column(name, justify="right", no_wrap=True)
    for name in ("%", "resets", "runs out"):
        shown.add_column(name, no_wrap=True)
    for number, row in enumerate(rows):
        last = number + 1 == len(rows) or rows[number + 1].key is None
        shown.add_row(*map(_text, _cells(row)), end_section=last)
    terminal = Console()
    (terminal if terminal.is_terminal else Console(width=FILE_WIDTH)).print(shown)


def reopened(application: str) -> None:
    """The word after `--reopen`."""
    typer.echo(f"{application} is open: the service is asked again. Running workers know within seconds.\n")


def nothing(why: str, as_json: bool) -> None:
    """Why there are no figures; on standard error beside an empty list where a program reads."""
    if as_json:
        typer.echo("[]")
    typer.echo(why, err=as_json)


def _cells(row: "UsageRow") -> tuple[str | Text, ...]:
    return (
        row.application if row.key is None else "",
        row.key or "",
        row.period,
        f"{row.used:,}",
        f"{row.in_doubt:,}" if row.in_doubt else "",
        "unlimited" if row.limit is None else f"{row.limit:,}",
        "" if row.left is None else f"{row.left:,}",
        _bar(row.percent),
        "never" if row.resets is None else row.resets[:10],
        _end(row),
    )


def _text(cell: str | Text) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


def _bar(percent: float | None) -> Text:
    if percent is None:
        return Text("")
    full = min(BAR, round(BAR * percent / 100))
    colour = "red" if percent >= _HOT else "yellow" if percent >= _WARM else "green"
    return Text.assemble(("█" * full, colour), ("·" * (BAR - full), "dim"), f" {percent:5.1f}")


def _end(row: "UsageRow") -> Text:
    if row.closed_until is not None:
        return Text(f"closed by the service until {row.closed_until[:10]}", style="red")
    if row.left == 0:
        return Text("used up", style="red")
    if row.runs_out is not None:
        return Text(row.runs_out[:10], style="yellow")
    return Text("" if row.limit is None else "not before the reset" if row.resets else "not at this pace")
