"""`v3bridge surface`: v3-surface.md and spec-keys.md of docs/reference, from the mappings and the route table."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from proxy.kit import shipped


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
    from proxy.web.v3.description import spec_keys_page, surface_page

    mappings = loader.load(folder or shipped.path("mappings"))
    typer.echo((spec_keys_page if page is SurfacePage.SPEC_KEYS else surface_page).page(mappings), nl=False)
