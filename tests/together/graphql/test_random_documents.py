"""Random documents: their data and errors are those of the upstream, from records or as operations of their own."""

import random
from typing import Any

import graphql
import pytest
from support import random_documents

import nexar_sandbox

DOCUMENTS, EACH = 80, 40  # in all; of one proxy
NUMBERS = ("SN74S74N", "1N4007", "NE555P", "sn74s74n", "SN74", "nosuchpart")
WORDS = (*NUMBERS, "flip flop", "Texas Instruments", "a “b”\n")
INTS = (1, 1, 2, 3, 10, 0)
# Live quotes differ from one request to the next; what is given as a country is refused by both, without a search.
LEFT_OUT = {"distributorApi", "distributorApiTimeout", "customPricingCredentials", "country", "currency", "sort"}
ROOTS = {"supMultiMatch", "supSearch", "supSearchMpn", "supParts"}
# What can be derived from records, by type: every other proxy gets only documents of that, and parts in all of them.
FROM_RECORDS = {
    "Query": ROOTS,
    "SupPartMatch": {"parts", "reference", "error", "hits"},
    "SupPartResultSet": {"results"},
    "SupPartResult": {"part", "akaMpn"},
}


def selects(parent: str, field: str) -> bool:
    return field in ROOTS if parent == "Query" else field != "extras"


def selects_records(parent: str, field: str) -> bool:
    return field in FROM_RECORDS.get(parent, {field}) and field not in ("extras", "similarParts", "companionProducts")


@pytest.mark.parametrize("seed", range(DOCUMENTS // EACH))
async def test_data_and_errors_are_those_of_the_upstream(pair: Any, catalog: nexar_sandbox.Catalog, seed: int) -> None:
    parts = list(catalog.parts())[:5]
    words = (*WORDS, *(part.id for part in parts), *(part.v3uid for part in parts))
    chosen = random.Random(seed)
    async with pair(application={"features": "all"}) as both:
        shown = await both.ask_upstream(graphql.get_introspection_query())
        schema = graphql.build_client_schema(shown.data)
        for _ in range(EACH):
            document = random_documents.random_document(
                schema,
                chosen,
                selects=selects_records if seed % 2 else selects,
                passes=lambda _, argument: argument not in LEFT_OUT,
                scalars={
                    "String": lambda random: random.choice(words),
                    "Int": lambda random: random.choice(INTS),
                    "Map": lambda random: random.choice(({}, {"manufacturer_id": ["370"]})),
                },
            )
            await both.assert_same(document.text, document.variables, document.operation_name)
