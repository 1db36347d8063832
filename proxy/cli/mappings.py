"""`v3bridge mappings`: what became of each v3 field, as a table."""

from pathlib import Path
from typing import Annotated

import typer

from proxy.cli import shown
from proxy.kit import shipped


def mappings(
    folder: Annotated[Path | None, typer.Option(help="A mappings folder; the shipped one if omitted.")] = None,
    only: Annotated[str | None, typer.Option("--object", help="Show one object, such as Part.")] = None,
) -> None:
    """Print the coverage table: for each v3 field exact, derived, constant or without a source, and why."""
    from proxy.mapping import coverage, loader

    rows = coverage.of_mappings(loader.load(folder or shipped.path("mappings")))
    names = sorted({row.object for row in rows})
    if only is not None and only not in names:
        raise typer.BadParameter(f"no mapping describes {only!r}; there are {', '.join(names)}", param_hint="--object")
    shown.coverage([row for row in rows if only in (None, row.object)])
