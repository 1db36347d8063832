"""Searches, matches, counts, completions and corrections return what an independent implementation returned.

It ordered and counted columns of figures, without SQL; its results are in searches.jsonl.
"""

from pathlib import Path

import msgspec

from nexar_sandbox.catalog import store
from sandbox import catalog_searches

RECORDED = Path(__file__).with_name("searches.jsonl").read_text("utf-8").splitlines()


def test_results_are_the_recorded_ones(catalog: store.Catalog) -> None:
    searches = msgspec.json.Decoder(catalog_searches.RecordedSearch)
    for line in RECORDED:
        search = searches.decode(line)
        result = catalog_searches.run(catalog, search)
        assert msgspec.json.decode(msgspec.json.encode(result)) == search.result, line
