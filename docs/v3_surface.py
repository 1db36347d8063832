"""The page of v3's endpoints, parameters and fields."""

from proxy.kit import shipped
from proxy.mapping import loader
from proxy.v3 import reference


def page() -> str:
    return reference.page(loader.load(shipped("mappings")))
