"""`v3bridge surface`: docs/v3-surface.md, made from the mappings and the route table."""

from pathlib import Path
from typing import Annotated

import typer

from proxy.kit import shipped


def surface(
    folder: Annotated[Path | None, typer.Option(help="A mappings folder; the shipped one if omitted.")] = None,
) -> None:
    """Print what became of every v3 path, parameter and field, as Markdown."""
    from proxy.mapping import loader
    from proxy.web.v3.description import markdown

    typer.echo(markdown.page(loader.load(folder or shipped.path("mappings"))), nl=False)
