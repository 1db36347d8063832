"""Random searches of twenty thousand parts have the results of plain SQL, in the same order."""

import random
from collections import Counter
from typing import Any

import pytest
from support import catalog_oracle

from nexar_sandbox.catalog import full_text, matching, records, store

ANY = records.SearchConditions()
PARTS = 20_000
# Of the shipped parts, whose words are those of real life, and of generated ones.
WORDS = ["resistor", "Resistors", "chip", "0603", "1%", "4.7k", "100 nF", "thick film", "Würth", "µF", "10 kΩ", "axial"]
WORDS += ["zener diode", "LED blue", "TI", "microcontroller", "cap", "16 V", "SN74", "RC0603FR-07", "d38999/26", "25.0"]
FILTERS = {
    "manufacturer_id": "p.maker = '{}'",
    "category_id": "p.category = '{}'",
    "distributor_id": "instr(' ' || p.sellers || ' ', ' {} ') > 0",
}
SORTS = [*catalog_oracle.KEYS, "resistance", "capacitance", "case_package", "tolerance"]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Out of a prepared file: in memory it is the same."""
    opened = store.open_catalog(PARTS, file=tmp_path_factory.mktemp("prepared") / "catalog.db")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def oracle(catalog: Any) -> Any:
    return catalog_oracle.CatalogOracle(catalog)


@pytest.fixture(scope="module")
def everything(oracle: Any) -> Any:
    return oracle.sql.execute("SELECT * FROM parts p ORDER BY id").fetchall()


@pytest.fixture
def rng() -> Any:
    return random.Random(7)


def _condition(rng: Any, everything: Any) -> Any:
    """A filter, and the same as SQL."""
    part, kind = rng.choice(everything), rng.randrange(6)
    named = {
        "manufacturer_id": part[3],
        "category_id": part[5],
        "distributor_id": rng.choice(part[13].split() or ["0"]),
    }
    if kind < 3:
        key = list(named)[kind]
        return records.SearchConditions(((key, (named[key],)),)), FILTERS[key].format(named[key])
    if kind == 3:
        low, high = sorted(10 ** rng.uniform(0, 7) for _ in range(2))
        clause = f"json_extract(p.line, '$.specs.resistance') BETWEEN {low!r} AND {high!r}"
        return records.SearchConditions((("resistance", (f"({low!r}__{high!r})",)),)), clause
    if kind == 4:
        return records.SearchConditions(in_stock_only=True, authorized_only=True), "p.stocked AND p.authorized > 0"
    return ANY, "1"


def _texts(rng: Any, everything: Any, count: Any) -> Any:
    """Typical search texts: words of a description, numbers or pieces of numbers, and combinations."""
    for _ in range(count):
        part = rng.choice(everything)
        typed = matching.words(part[6].partition('"description":"')[2].partition('"')[0])
        yield " ".join(
            rng.sample([*(typed or ["cap"]), rng.choice(WORDS), part[1][: rng.randrange(2, 9)]], k=rng.randrange(1, 3))
        )


def test_full_text_relevance_equals_that_of_sqlite(catalog: Any, oracle: Any, everything: Any, rng: Any) -> None:
    for q in [*WORDS, *_texts(rng, everything, 80), "no such thing", "resistor " * 3]:
        conditions, where = _condition(rng, everything)
        assert list(catalog.search(q, conditions).ids) == oracle.by_text(q, where), q


def test_part_numbers_are_found_exactly_by_prefix_and_by_substring(
    catalog: Any, oracle: Any, everything: Any, rng: Any
) -> None:
    for _ in range(80):
        mpn = rng.choice(everything)[1]
        start = rng.choice([0, 0, rng.randrange(len(mpn))])
        q = rng.choice([str.lower, str])(mpn[start : start + rng.randrange(1, 12)])
        if not matching.normalize(q):
            continue
        conditions, where = _condition(rng, everything)
        found = catalog.search_mpn(q, conditions)
        expected = oracle.by_mpn(q, where)
        assert list(found.ids) == [id_ for id_, _ in expected], q
        assert found.aka == {id_: aka for id_, aka in expected if aka}, q


def test_matched_alternate_numbers_are_named(catalog: Any, oracle: Any) -> None:
    akas = [mpn for (mpn,) in oracle.sql.execute("SELECT mpn FROM names WHERE aka ORDER BY mpn")]
    assert akas
    for q in akas:
        assert list(catalog.search_mpn(q, ANY).aka.items()) == [pair for pair in oracle.by_mpn(q) if pair[1]]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("sort", SORTS)
def test_a_sort_key_orders_hits_with_missing_values_last(
    catalog: Any, oracle: Any, sort: Any, descending: bool
) -> None:
    order = oracle.order(sort, descending)
    assert list(catalog.search("", ANY, sort, descending).ids) == oracle.everything(order=order)
    assert list(catalog.search("chip", ANY, sort, descending).ids) == oracle.by_text("chip", order=order)
    assert list(catalog.search_mpn("C0", ANY, sort, descending).ids) == [
        id_ for id_, _ in oracle.by_mpn("C0", "1", order)
    ]


def test_a_page_is_a_slice_of_all_hits(catalog: Any, oracle: Any, rng: Any) -> None:
    for q, sort in [("resistor", ""), ("chip", "mpn"), ("", ""), ("ceramic", "capacitance")]:
        hits = catalog.search(q, ANY, sort)
        expected = oracle.by_text(q, order=oracle.order(sort, False) if sort else "")
        assert hits.hits == len(expected)
        for _ in range(10):
            start, limit = rng.randrange(len(expected)), rng.randrange(60)
            assert list(hits.page(start, limit)) == expected[start : start + limit]


def test_counts_are_over_all_hits(catalog: Any, oracle: Any, everything: Any, rng: Any) -> None:
    for q in ["", "resistor", "0603 X7R", *_texts(rng, everything, 5)]:
        hits = catalog.search(q, ANY)
        ids = oracle.by_text(q)
        assert [(one.id, count) for one, count in catalog.manufacturer_counts(hits)] == oracle.counts(ids, "p.maker")
        assert [(one.id, count) for one, count in catalog.category_counts(hits)] == oracle.counts(ids, "p.category")
        assert [(one.id, count) for one, count in catalog.distributor_counts(hits)] == oracle.seller_counts(ids)
        assert [count for _, count in catalog.in_stock_counts(hits)] == [n for _, n in oracle.counts(ids, "p.stocked")]
        assert [count for _, count in catalog.cad_counts(hits)] == [n for _, n in oracle.counts(ids, "p.cad")]
        for name in ("resistance", "case_package", "tolerance"):
            whole = oracle.counts(ids, f"json_extract(p.line, '$.specs.{name}')")
            found = catalog.spec_counts(hits, name)
            assert [(value if number is None else number, n) for value, number, n in found.buckets] == _apart(whole)
            assert catalog.with_value(hits, name) == sum(n for _, n in whole)


def _apart(counted: Any) -> Any:
    """Texts of several values counted for each of them."""
    found: Counter[Any] = Counter()
    for value, count in counted:
        for one in dict.fromkeys(map(str.strip, value.split(","))) if isinstance(value, str) else [value]:
            found[one] += count
    return found.most_common()


def test_completions_are_the_most_offered_numbers(catalog: Any, oracle: Any, everything: Any, rng: Any) -> None:
    for _ in range(40):
        start = matching.normalize(rng.choice(everything)[1])[: rng.randrange(1, 8)]
        shown = [one.text for one in catalog.suggest(start, part_numbers_only=True)]
        assert shown == list(dict.fromkeys(oracle.suggestions(start, 10)))


def test_the_index_has_the_same_terms_as_sqlite(catalog: Any, oracle: Any) -> None:
    stored = catalog._connection.execute("SELECT term FROM terms ORDER BY position")
    held = dict(zip((term for (term,) in stored), catalog._columns.column("term_documents").tolist(), strict=True))
    assert held == oracle.terms()


def test_a_query_is_searched_with_and_without_punctuation() -> None:
    assert full_text.parse_query("SN74-S74N Würth*") == [
        (full_text.Phrase(("sn74", "s74n"), False), full_text.Phrase(("sn74s74n",), False)),
        (full_text.Phrase(("wurth",), True),),
    ]
    assert full_text.parse_query("-- *") == []
