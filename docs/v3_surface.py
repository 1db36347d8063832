"""The page of v3's endpoints, parameters and fields."""

from pathlib import Path

from docs import citations
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.v3.description import surface_page


def page() -> str:
    text = surface_page.page(loader.load(shipped.path("mappings")))
    return citations.linked(text, Path(__file__).parent)
