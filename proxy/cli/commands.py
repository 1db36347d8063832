"""What commands have in common: options, and what they print. Results go to standard output, without formatting where
it is no terminal; what commands do and ask to standard error.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proxy import config
from proxy.config import loader
from proxy.kit import printable, shipped

ConfigFile = Annotated[Path | None, typer.Option("--config", help="The configuration; the shipped one if omitted.")]
AdminPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, envvar="V3BRIDGE_ADMIN_PORT", help="Replaces admin.port; also V3BRIDGE_ADMIN_PORT."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

FILE_WIDTH = 160  # columns of a table that goes to a file or a pipe

Column = str | Callable[[Any], Any]
Line = str | Text | Table


def configured(file: Path | None, *, accounts: bool = False) -> config.Config:
    """Load a configuration, the shipped one without a file, for what needs no credentials, but perhaps the client ids,
    by which `accounts` of applications are known. Raises ConfigError."""
    return loader.load(file or shipped("config.yaml"), os.environ, upstream=False, accounts=accounts)


def print_result(result: Any, lines: Iterable[Line], as_json: bool) -> None:
    """Print a result: its lines, or all of it as JSON."""
    if as_json:
        print_json(result)
    else:
        print_lines(lines)


def print_lines(lines: Iterable[Line]) -> None:
    """Print lines and tables: to the terminal, or to standard output with a width for files and pipes."""
    terminal = Console()
    console = terminal if terminal.is_terminal else Console(width=FILE_WIDTH)
    for line in lines:
        if not isinstance(line, Table) or line.rows:
            console.print(visible(line) if isinstance(line, str) else line, soft_wrap=not isinstance(line, Table))


def table(rows: Sequence[Any], columns: Mapping[str, Column]) -> Table:
    """Return a table. A column has its title, and a key or attribute of the rows, or a function of one. Numbers stand
    right, a Decimal as an amount of money; texts are folded and never cut; a `Text` keeps its style. A column in which
    nothing stands is left out."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    getter = itemgetter if rows and isinstance(rows[0], Mapping) else attrgetter
    cells = []
    for title, column in columns.items():
        values = [*map(column if callable(column) else getter(column), rows)]
        if any(value not in (None, "") for value in values):
            is_number = any(isinstance(value, int | float | Decimal) for value in values)
            justify: Literal["left", "right"] = "right" if is_number else "left"
            made.add_column(Text(title), justify=justify, no_wrap=is_number, overflow="fold")
            cells.append(map(visible, values))
    for row in zip(*cells, strict=True):
        made.add_row(*row)
    return made


def visible(value: Any, style: str = "") -> Text:
    """Return a value as text. It may be a client's or a file's: what a terminal would obey is made visible."""
    if isinstance(value, Text):
        return value
    if isinstance(value, Decimal):
        value = f"{value:,.2f}"
    elif isinstance(value, int | float):
        value = f"{value:,}"
    return Text(printable("" if value is None else str(value)), style)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def say(text: str) -> None:
    """Print one line to standard error."""
    Console(stderr=True, soft_wrap=True, highlight=False).print(visible(text))
