"""`v3bridge mappings`: the coverage of v3 fields as a table, or the source of the mapping functions.
`v3bridge surface`: docs/reference/v3-surface.md, from the mappings and the route table.
"""

from pathlib import Path
from typing import Annotated

import typer

from proxy import config
from proxy.cli import shown
from proxy.kit import shipped


def mappings(
    name: Annotated[str | None, typer.Argument(metavar="OBJECT", help="Show one object, such as Part.")] = None,
    folder: Annotated[Path | None, typer.Option(help="A mappings folder; the shipped one if omitted.")] = None,
    only: Annotated[str | None, typer.Option("--object", help="The same as OBJECT.")] = None,
    source: Annotated[
        bool, typer.Option("--source", help="Print the functions that the mapping rules are compiled to.")
    ] = False,
) -> None:
    """Print the coverage table: for each v3 field exact, derived, constant or without a source, and why."""
    from proxy.mapping import compiler, coverage, loader

    read = loader.load(folder or shipped.path("mappings"))
    only = name or only
    rows = coverage.of_mappings(read)
    names = sorted({row.object for row in rows})
    if only is not None and only not in names:
        raise typer.BadParameter(f"no mapping describes {only!r}; there are {', '.join(names)}", param_hint="--object")
    if source:
        typer.echo(compiler.source_of(read, config.FEATURES, only), nl=False)
    else:
        shown.coverage([row for row in rows if only in (None, row.object)])


def surface(
    folder: Annotated[Path | None, typer.Option(help="A mappings folder; the shipped one if omitted.")] = None,
) -> None:
    """Print the support of every v3 path, parameter, field and spec key as Markdown."""
    from proxy.mapping import loader
    from proxy.v3.description import surface_page

    typer.echo(surface_page.page(loader.load(folder or shipped.path("mappings"))), nl=False)
