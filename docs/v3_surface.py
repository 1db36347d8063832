"""The page of v3's endpoints, parameters and fields."""

from proxy.kit import shipped
from proxy.mapping import loader
from proxy.v3.description import surface_page


def page() -> str:
    return surface_page.page(loader.load(shipped.path("mappings")))
