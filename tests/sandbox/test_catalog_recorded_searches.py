"""Searches, matches, counts, completions and corrections return what an independent implementation returned.

It ordered and counted columns of figures, without SQL; its results are in searches.jsonl.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from nexar_sandbox.catalog import store
from sandbox import catalog_searches

RECORDED = Path(__file__).with_name("searches.jsonl").read_text("utf-8").splitlines()


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[store.Catalog]:
    """Out of a prepared file: in memory it is the same."""
    opened = store.open_catalog(catalog_searches.PARTS, file=tmp_path_factory.mktemp("prepared") / "catalog.db")
    yield opened
    opened.close()


def test_results_are_the_recorded_ones(catalog: store.Catalog) -> None:
    searches = msgspec.json.Decoder(catalog_searches.RecordedSearch)
    for line in RECORDED:
        search = searches.decode(line)
        result = catalog_searches.run(catalog, search)
        assert msgspec.json.decode(msgspec.json.encode(result)) == search.result, line
