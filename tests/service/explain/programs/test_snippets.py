"""Every transform of mapping files has a twin in programs, which gives the same values."""

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.explain.programs import python_program, rows
from proxy.kit import shipped
from proxy.mapping import loader

MAPPINGS = loader.load(shipped.path("mappings"))
TABLES = rows.table_rows(MAPPINGS.tables)
ATTRIBUTE_FILE = shipped.path("mappings").parent / "sandbox/nexar_sandbox/catalog/data/attributes.jsonl"
ATTRIBUTES = [json.loads(line) for line in ATTRIBUTE_FILE.read_text(encoding="utf-8").splitlines()]
EXAMPLES = 60  # of each transform

# Only what Nexar sends: small letters of other alphabets differ between languages.
words = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
company_names = words.filter(lambda name: not name.isdecimal())  # tables have ids and names, which are no numbers
currencies = st.sampled_from(["USD", "EUR", ""])
amounts = st.one_of(
    st.decimals(0, 10_000, places=5).map(float),
    st.integers(0, 100_000).map(lambda number: number / 64),  # some of them are halves of the fifth decimal
    st.floats(0, 1e6, allow_subnormal=False),
)
prices = st.lists(
    max_size=4,
    elements=st.fixed_dictionaries({"quantity": st.integers(1, 9999), "price": amounts, "currency": currencies}),
)
recorded = [
    (id_, name)
    for uids in MAPPINGS.tables.uids.values()
    for name, id_ in [
        *((name, id_) for name, id_ in uids.recorded().ids.items()),
        *((n, "9") for n in uids.recorded().by_name),
    ]
]
named = st.one_of(
    st.sampled_from(recorded),
    st.tuples(st.integers(0, 2**40 - 1).map(str), st.one_of(company_names, st.just("constructor"))),
).map(lambda pair: {"id": pair[0], "name": pair[1]})
shortnames = st.one_of(
    st.sampled_from([*TABLES["SPEC_RANGES"], *TABLES["PERCENT_SPECS"], *TABLES["SPECS_BESIDE"]["tolerance"]]),
    st.sampled_from([*MAPPINGS.tables.specs.names, "lifecyclestatus", "unheardof"]),
)
numbers = st.one_of(
    st.decimals("0.0001", 9999, places=2).map(str), st.integers(0, 99_999).map(str), st.sampled_from(["abc", "", "≤ 5"])
)
# A tolerance has few digits: those of other numbers are all shown.
long_numbers = st.one_of(numbers, st.floats(1e-9, 1e15).map(str))
specs = st.lists(
    st.fixed_dictionaries({
        "attribute": st.fixed_dictionaries({"shortname": shortnames}),
        "value": numbers, "siValue": numbers, "displayValue": words,
    }),
    max_size=4,
)  # fmt: skip
times = st.builds(
    lambda moment, minutes, spelled: spelled(moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))),
    st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1)),  # noqa: DTZ001 - the zone is drawn beside it
    st.integers(-14 * 60, 14 * 60),
    st.sampled_from([
        datetime.isoformat,
        lambda moment: f"{moment:%Y-%m-%dT%H:%M:%S}Z",
        lambda moment: f"{moment:%Y-%m-%dT%H:%M:%S.%f}0Z",
        lambda moment: f"{moment:%Y-%m-%dT%H:%M:%S}",
    ]),
)  # fmt: skip
flags = st.booleans()
number_specs = st.tuples(shortnames, st.sampled_from(["number", "text"]), numbers, numbers) | st.tuples(
    shortnames.filter(lambda name: name not in TABLES["PERCENT_SPECS"]), st.just("number"), long_numbers, long_numbers
)
cad = st.fixed_dictionaries(
    {f"{field}{name}": strategy
     for name in ("Altium", "Eagle", "Orcad", "Kicad")
     for field, strategy in (("has", flags), ("downloadUrl", st.none() | words))}
)  # fmt: skip
uid = named.map(lambda each: (each["id"], each["name"]))

ARGUMENTS: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "prices_by_currency": st.tuples(prices),
    "timestamp": st.tuples(times),
    "text": st.tuples(st.integers(0, 10**9)),
    "listed": st.tuples(words),
    "naive_id": st.tuples(words, words, st.none() | words),
    "offer_rank": st.tuples(flags, st.integers(-4, 4), prices, currencies),
    "image_mimetype": st.tuples(
        st.one_of(words, st.sampled_from(["a.PNG", "b.c.svg", "https://e.example/i.jpeg", "https://e.example/x"]))
    ),
    "is_datasheet_group": st.tuples(st.one_of(words, st.just("Datasheets"))),
    "is_compliance_group": st.tuples(st.one_of(words, st.just("Compliance Documents"))),
    "subtypes": st.tuples(words),
    "cad_downloads": st.tuples(cad),
    "is_false": st.tuples(st.booleans()),
    "first_click": st.tuples(st.lists(st.fixed_dictionaries({"clickUrl": words}), max_size=2)),
    "names": st.tuples(st.lists(named, max_size=3)),
    "redirected": st.tuples(st.sampled_from("ab"), st.sampled_from(["a", "", None])),
    "converted_price": st.tuples(*[st.sampled_from([0.0, 1.5, 2.0]), currencies] * 2, currencies),
    "lifecycle_status": st.tuples(specs),
    "case_package": st.tuples(specs),
    **dict.fromkeys(("seller_uid", "brand_uid", "manufacturer_uid", "category_uid", "seller_name"), uid),
    "category_line": st.tuples(
        st.builds(lambda each, ancestors: {**each, "ancestors": ancestors}, named, st.lists(named, max_size=3))
    ),
    "category_uids": st.tuples(st.lists(named, max_size=3)),
    "parent_uid": st.tuples(st.lists(named, max_size=3)),
    "source_uid": named.map(lambda each: (each["name"],)),
    "source_name": named.map(lambda each: (each["name"],)),
    "spec_key": st.builds(
        lambda each, below: (each["shortname"], each["name"], below),
        st.sampled_from(ATTRIBUTES) | st.fixed_dictionaries({"shortname": st.just("unheardof"), "name": words}),
        specs,
    ),
    "spec_name": st.tuples(shortnames, words, specs),
    "spec_shown": st.tuples(shortnames, specs),
    "spec_datatype": st.tuples(shortnames, st.sampled_from(["number", "text"])),
    "spec_has_unit": st.tuples(shortnames, st.none() | words),
    "spec_values": number_specs,
    "spec_low": st.tuples(shortnames, specs),
    "spec_high": st.tuples(shortnames, specs),
    "spec_display": st.tuples(shortnames, words, numbers, numbers, specs),
}


def test_every_transform_has_a_snippet() -> None:
    assert set(ARGUMENTS) == set(MAPPINGS.transforms)
    assert set(MAPPINGS.transforms) <= set(python_program.transforms())


def python_functions() -> dict[str, Any]:
    names: dict[str, Any] = {"datetime": datetime, "UTC": UTC, "hashlib": hashlib, "re": re, **TABLES}
    exec("\n\n".join(python_program.transforms().values()), names)
    return names


PYTHON = python_functions()


@pytest.mark.parametrize("name", ARGUMENTS)
def test_snippet_gives_the_values_of_the_transform(name: str) -> None:
    @given(ARGUMENTS[name])
    @settings(max_examples=EXAMPLES, database=None)
    def agree(arguments: tuple[Any, ...]) -> None:
        result = msgspec.json.encode(PYTHON[name](*as_records(arguments)))
        assert msgspec.json.decode(result) == of_proxy(name, arguments)

    agree()


def of_proxy(name: str, arguments: tuple[Any, ...]) -> Any:
    """Return the result of the proxy's own function."""
    # Tuples become lists.
    return msgspec.json.decode(msgspec.json.encode(MAPPINGS.transforms[name](*as_records(arguments))))


def as_records(arguments: tuple[Any, ...]) -> Any:
    return json.loads(json.dumps(arguments), object_hook=lambda fields: SimpleNamespace(**fields))


def test_keys_of_all_known_attributes_are_made_of_their_names() -> None:
    assert len(ATTRIBUTES) > 150
    for each in ATTRIBUTES:
        arguments: tuple[Any, ...] = (each["shortname"], each["name"], [])
        assert PYTHON["spec_key"](*arguments) == of_proxy("spec_key", arguments)
