"""`v3bridge sheet`: fills spreadsheets with parts data, through the quota and cache of the service.

Exit code 0: every line has a part; 1: the file is written, but some lines lack one, or the run stopped early; 2: a
mistake in options or the file, or a declined cost: nothing is written; 3: a file that was to be replaced was changed
during the run: the result is beside it.
"""

import typer
from rich.table import Table
from rich.text import Text

from proxy.cli import option_fields
from proxy.cli.shown import table_console
from proxy.tools.sheet.command import filling
from proxy.tools.sheet.command.fill_options import FillOptions

app = typer.Typer(help="Spreadsheets with parts data.", no_args_is_help=True)


def _fill(options: FillOptions) -> None:
    """Fill a parts list with columns of prices, stock and other data, or the formulas of an add-in. Prints the cost
    first."""
    raise typer.Exit(filling.run(options))


app.command("fill")(option_fields.command(FillOptions, _fill))


@app.command("columns")
def columns() -> None:
    """List the columns that `sheet fill --columns` can add."""
    from proxy.tools.sheet.columns.kinds import KINDS

    shown = {"quantity": "[@QUANTITY]", "currency": "[:CURRENCY]", "distributor": "[:DISTRIBUTOR]", "spec": ":NAME"}
    table = Table("column", "content")
    for name, kind in KINDS.items():
        table.add_row(Text(name + "".join(shown[option] for option in kind.options)), Text(kind.explanation))
    table_console().print(table)
