"""`v3bridge mappings`: the coverage of v3 fields as a table, or the source of the mapping functions.
`v3bridge surface`: v3-surface.md and spec-keys.md of docs/reference, from the mappings and the route table.
"""

from enum import StrEnum
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


class SurfacePage(StrEnum):
    """Generated pages of the documentation."""

    FIELDS = "fields"
    SPEC_KEYS = "spec-keys"


def surface(
    folder: Annotated[Path | None, typer.Option(help="A mappings folder; the shipped one if omitted.")] = None,
    page: Annotated[
        SurfacePage, typer.Option(help="fields: paths, parameters, fields; spec-keys.")
    ] = SurfacePage.FIELDS,
) -> None:
    """Print the support of every v3 path, parameter and field, or of every spec key, as Markdown."""
    from proxy.mapping import loader
    from proxy.v3.description import spec_keys_page, surface_page

    loaded = loader.load(folder or shipped.path("mappings"))
    typer.echo((spec_keys_page if page is SurfacePage.SPEC_KEYS else surface_page).page(loaded), nl=False)
