"""`v3bridge sheet`: fills parts lists and workbooks, through the quota and the store of the service.

Exit code 0: all lines are found, or only the cost was asked for; 1: some are not, in doubt, or not fetched; 2: a
mistake in options or the file, or a declined cost: nothing is written; 3: nothing usable.
"""

import typer

from proxy.cli import commands
from proxy.tools import running
from proxy.tools.sheet import columns
from proxy.tools.sheet.options import FillOptions

sheet = typer.Typer(help="Parts lists and workbooks with parts data.", no_args_is_help=True)


def _fill(options: FillOptions) -> None:
    """Fill a parts list with prices, stock and more (see `v3bridge sheet columns`), or the formulas of the add-in."""
    from proxy.tools.sheet import run

    raise typer.Exit(run.run(options))


sheet.command("fill")(running.command(FillOptions, _fill))


@sheet.command("columns")
def _columns() -> None:
    """List the columns that `sheet fill --columns` can add."""
    options = {"quantity": "[@QUANTITY]", "currency": "[:CURRENCY]", "distributor": "[:DISTRIBUTOR]", "spec": ":NAME"}
    names = {name + "".join(options[each] for each in kind.options): kind for name, kind in columns.KINDS.items()}
    commands.print_lines([commands.table([*names], {"column": str, "content": lambda name: names[name].explanation})])
