"""Output of commands: tables and short texts, without formatting if the output is not a terminal."""

from collections.abc import Collection, Sequence
from typing import Any, Literal

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proxy.kit.wording import printable

FILE_WIDTH = 160  # columns of a table that goes to a file or a pipe


def table_console() -> Console:
    """Return where tables are printed: the terminal, or standard output with a width for files and pipes."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=FILE_WIDTH)


def plain_table(title: str) -> Table:
    """Return a table without lines between its columns, for terminals that may be narrow."""
    return Table(title=title, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)


def add_columns(table: Table, *names: str, right: Collection[str] = (), fold: Collection[str] = ()) -> None:
    """Add columns, whose cells stay in one line but for those of `fold`; those of `right` hold numbers."""
    for name in names:
        table.add_column(
            name,
            justify="right" if name in right else "left",
            no_wrap=name not in fold,
            overflow="fold" if name in fold else "ellipsis",
        )


def table(*columns: str, rows: Sequence[Sequence[str | int | Text | None]]) -> Table:
    """Return a table. Numbers stand right, texts are folded and never cut; a column in which nothing stands is left
    out."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    used = [place for place in range(len(columns)) if any(row[place] not in (None, "") for row in rows)]
    for place in used:
        is_number = any(isinstance(row[place], int) for row in rows)
        justify: Literal["left", "right"] = "right" if is_number else "left"
        made.add_column(Text(columns[place]), justify=justify, no_wrap=is_number, overflow="fold")
    for row in rows:
        made.add_row(*(_cell(row[place]) for place in used))
    return made


def _cell(value: str | int | Text | None) -> Text:
    if isinstance(value, Text):
        return value
    return visible("" if value is None else f"{value:,}" if isinstance(value, int) else value)


def visible(value: str, style: str = "") -> Text:
    """Return text that may be a client's or a file's, with what a terminal would obey made visible."""
    return Text(printable(value), style)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def service(url: str, apikey: str, example: bool) -> None:
    """Print the URL of the running service, and a curl command to try it."""
    console = Console(soft_wrap=True, highlight=False)
    upstream = " on the embedded sandbox" if example else ""
    console.print(f"v3bridge is listening at [bold]{url}/v3[/bold]{upstream}. Try it:\n")
    query = '[{"mpn":"SN74S74N"}]'
    console.print(Text(f"    curl -g '{url}/v3/parts/match?apikey={apikey}&pretty_print=true&queries={query}'\n"))


def operators_port(url: str) -> None:
    """Print the URLs of the operators' port, where there is one."""
    if url:
        console = Console(soft_wrap=True, highlight=False)
        console.print(f"For operators: its state at [bold]{url}/status[/bold], its metrics at {url}/metrics.\n")
