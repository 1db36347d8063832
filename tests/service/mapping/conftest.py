"""Fixtures: a temporary mappings folder, and the shipped one."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from proxy import model
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning.documents import ProjectionCache

SCHEMA = """
type Query { things: [SupPart!]! }
type SupPart {
  id: ID!
  mpn: String!
  maker: SupCompany
  offers(onlyNew: Boolean): [SupOffer!]!
  tags: [String!]!
  price: Float
}
type SupCompany { id: ID! name: String! }
type SupOffer { sku: String! stock: Int maker: SupCompany! }
"""
UIDS = "Seller: []\nBrand: []\nManufacturer: []\nCategory: []\nSource: []\n"

Load = Callable[..., loader.Mappings]


@pytest.fixture(scope="session")
def mappings() -> loader.Mappings:
    return loader.load(shipped("mappings"))


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads a folder of one rule file; other files by name."""

    def loaded(rules: str, **files: str) -> loader.Mappings:
        contents = {"schema.graphql": SCHEMA, "uids.yaml": UIDS}
        contents |= dict.fromkeys(("spec_names.yaml", "spec_keys.yaml", "search.yaml"), "{}\n")
        contents |= {name.replace("__", "."): text for name, text in files.items()}
        for name, text in {**contents, "part.yaml": rules}.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        return loader.load(tmp_path)

    return loaded


@pytest.fixture
def map_part(load: Load) -> Callable[..., object]:
    """A part of the small schema mapped by some rules, in a projection."""

    def map_(rules: str, record: object, **projection: object) -> object:
        shown = model.Projection(**projection)  # type: ignore[arg-type]
        part = ProjectionCache(load(rules)).part(shown)
        return msgspec.to_builtins(part.map(msgspec.convert(record, part.record), model.MappingContext("US", "USD")))

    return map_
