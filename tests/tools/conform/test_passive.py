"""Exchanges of others: how they are read, what is compared, and what is kept of them."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proxy import errors
from proxy.kit import zstd
from proxy.redaction import HIDDEN
from proxy.tools.conform import evidence, exchanges, page, passive, reading
from proxy.tools.conform.exchanges import UpstreamExchange
from proxy.tools.conform.results import Outcome, Plan, RunCost, RunResult
from proxy.traffic.recording.recorder import RecordedDocument, RecordedOperation, RecordingHeader, RecordingLine

BODIES = Path(__file__).parent / "bodies"  # of matches on the sandbox, shortened

NOW = 1_800_000_000.0
DOCUMENT = """query ($queries: [SupPartMatchQuery!]!) {
  found: supMultiMatch(queries: $queries, currency: "JPY") { hits parts { ...whole } } }
  fragment whole on SupPart { mpn sellers { offers { inventoryLevel prices { quantity price currency } } } }"""


def _body(*numbers: str, stock: Any = 5, quantities: tuple[int, ...] = (1, 10)) -> dict[str, Any]:
    def offer() -> dict[str, Any]:
        return {
            "inventoryLevel": stock,
            "prices": [{"quantity": each, "price": 1.5, "currency": "USD"} for each in quantities],
        }

    found = [{"hits": 1, "parts": [{"mpn": number, "sellers": [{"offers": [offer()]}]}]} for number in numbers]
    return {"data": {"found": found}}


def _asked(*numbers: str, **more: Any) -> UpstreamExchange:
    variables = {"queries": [{"mpn": number} for number in numbers]}
    return UpstreamExchange(more.pop("body", None) or _body(*numbers), query=DOCUMENT, variables=variables, **more)


def _outcomes(*seen: UpstreamExchange) -> dict[str, Outcome]:
    checks = passive.Passive(reading.load())
    checks.add_all(seen)
    return {
        outcome.id: outcome
        for outcome in passive.outcomes(checks.evidence(), checks.catalogue)
        if outcome.verdict != "not tested"
    }


def _contradicted(*seen: UpstreamExchange) -> set[str]:
    return {id for id, outcome in _outcomes(*seen).items() if outcome.verdict == "contradicted"}


def test_a_body_settles_what_it_has_with_its_request_and_without() -> None:
    alone = _outcomes(UpstreamExchange(_body("A-1", "B-2")))
    assert set(alone) == {"stock-codes", "price-order", "price-type"}
    asked = _outcomes(_asked("A-1", "B-2"))
    assert set(asked) == set(alone) | {
        "match-order",
        "match-whole-number",
        "match-numbers",
        "match-best-first",
        "price-currency",
    }
    assert {outcome.verdict for outcome in asked.values()} == {"confirmed"}


@pytest.mark.parametrize(
    "seen, ids",
    [
        (_asked("A-1", "B-2", body=_body("B-2", "A-1")), {"match-order"}),
        (_asked("A-1", body=_body("A-1", stock=-5)), {"stock-codes"}),
        (_asked("A-1", body=_body("A-1", stock="5")), {"stock-codes"}),
        (_asked("A-1", body=_body("A-1", quantities=(10, 1))), {"price-order"}),
        (UpstreamExchange({"error": "invalid_client"}, status=401), {"token-error-status"}),
        (UpstreamExchange({"errors": [{"message": "Your part limit is exceeded"}]}), {"part-limit-message"}),
        # What comes with errors, or from a gateway, says nothing about parts.
        (_asked("A-1", body={**_body("A-1", stock=-5), "errors": [{"message": "no"}]}), set()),
        (_asked("A-1", body=_body("A-1", stock=-5), status=503), set()),
        (UpstreamExchange("<html>", status=502), set()),
        (UpstreamExchange(None), set()),
    ],
)
def test_a_deviation_contradicts_its_assumption(seen: UpstreamExchange, ids: set[str]) -> None:
    assert _contradicted(seen) - {"match-numbers", "match-whole-number"} == ids


def test_exchanges_are_compared_with_earlier_ones() -> None:
    other = {"data": {"found": [{"hits": 3, "parts": []}]}}
    assert _contradicted(_asked("A-1"), _asked("a-1", body=other)) == {"match-case"}
    assert _contradicted(_asked("A-1"), _asked("A-1", body=other)) == set()


def test_counts_times_and_the_smallest_redacted_example_are_kept() -> None:
    secret = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjF9.c2lnbmF0dXJl"
    limit = {"errors": [{"message": f"part limit of {secret} and much more text"}]}
    outcome = _outcomes(
        UpstreamExchange(limit, at="2027-01-01T00:00:00Z"),
        UpstreamExchange({"errors": [{"message": f"part limit {secret}"}]}, at="2027-01-02T00:00:00Z"),
        UpstreamExchange(
            {"errors": [{"message": "You have exceeded your part limit of 5. "}]}, at="2027-01-03T00:00:00Z"
        ),
    )["part-limit-message"]
    assert (outcome.exchanges, outcome.first[:10], outcome.last[:10]) == (3, "2027-01-01", "2027-01-03")
    assert (outcome.reason, outcome.got) == ("2 of 3 exchanges", f"part limit {HIDDEN}")


def test_files_directories_and_lines_are_read(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    asked = _asked("A-1")
    (tmp_path / "below/a.response.json").write_text(json.dumps(asked.body))
    (tmp_path / "below/a.request.json").write_text(json.dumps({"query": asked.query, "variables": asked.variables}))
    (tmp_path / "b.json").write_text('{"access_token": "x"}')
    (tmp_path / "c.json").write_text('{"name": "no exchange"}')
    line = {"status": 400, "headers": {"date": "x"}, "body": {"error": "invalid_client"}}
    (tmp_path / "d.jsonl").write_text(f"{json.dumps(line)}\n\n{json.dumps(line)}\n")
    read = list(exchanges.read([tmp_path], NOW))
    assert [each.body for each in read] == [{"access_token": "x"}, asked.body, *[line["body"]] * 2]
    assert (read[1].query, read[1].variables, read[2].status) == (asked.query, asked.variables, 400)


def test_bodies_of_matches_settle_core_assumptions() -> None:
    tiers = {each.id: each.tier for each in reading.load().assumptions}
    read = list(exchanges.read([BODIES], NOW))
    asked = _outcomes(*read)
    alone = _outcomes(*(UpstreamExchange(each.body) for each in read))
    assert {each.verdict for each in (asked | alone).values()} == {"confirmed"}
    assert sum(tiers[id] == "core" for id in asked) >= 34
    assert sum(tiers[id] == "core" for id in alone) >= 14


@pytest.mark.parametrize("age, count, end", [(3600.0, 1, "\n"), (90_000.0, 0, "\n"), (NOW, 1, "\n"), (NOW, 1, "")])
def test_a_recording_of_the_last_day_is_read(tmp_path: Path, age: float, count: int, end: str) -> None:
    asked = _asked("A-1")
    header = RecordingHeader(made=NOW, baseline=None, candidate="here", source="requests")
    operation = RecordedOperation(
        "B", msgspec.Raw(msgspec.json.encode(asked.variables)), "1", json.dumps(asked.body), status=200
    )
    lines = (
        header,
        RecordingLine(document=RecordedDocument("1", asked.query)),
        RecordingLine(upstream=(operation,), at=NOW - age),
    )
    file = tmp_path / "run.zst"
    file.write_bytes(zstd.compress(b"\n".join(map(msgspec.json.encode, lines)) + end.encode(), 1))
    read = list(exchanges.read([file], NOW))
    assert [(each.body, each.query, each.variables, each.operation) for each in read] == [
        (asked.body, asked.query, asked.variables, "B")
    ] * count
    # Data of a sandbox has no time, and says nothing of Nexar's.
    assert [each.host for each in read] == ["sandbox" if age == NOW else ""] * count


def test_a_recording_with_a_wrong_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"v3bridge-recording": 2}\n{"upstream": [{}]}\n')
    with pytest.raises(errors.ConfigError, match=r"run\.json: line 2 is not of a recording of v3bridge"):
        list(exchanges.read([tmp_path], NOW))


@pytest.mark.parametrize(
    "content, message",
    [("{", "is not JSON"), ('{"name": 1}', "is no exchange: expected a body with data"), (None, "cannot be read")],
)
def test_a_file_that_is_no_exchange_is_named(tmp_path: Path, content: str | None, message: str) -> None:
    file = tmp_path / "x.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(errors.ConfigError, match=f"x.json: {message}"):
        list(exchanges.read([file], NOW))


def test_a_directory_without_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match="has no file named"):
        list(exchanges.read([tmp_path], NOW))


def test_what_was_observed_is_what_the_sandbox_imitates() -> None:
    checks = passive.Passive(reading.load())
    collection = {"documentCollections": [{"name": "All datasheets"}], "mpn": "A"}
    checks.add(UpstreamExchange({"data": {"supParts": [collection]}}))
    checks.add(UpstreamExchange({"error": "invalid_client"}, status=401))
    checks.add(_asked("A-1", body=_body("A-1", quantities=(10, 1))))
    assert passive.behavior(checks.evidence(), checks.catalogue) == {
        "datasheet_collection": "All datasheets",
        "token_error_status": 401,
        "prices_by_quantity": False,
    }


def test_the_page_says_how_many_exchanges_and_when() -> None:
    catalogue = reading.load().only(["stock-codes", "price-order"])
    seen = (
        Outcome("stock-codes", "core", "confirmed", True, True, exchanges=12, last="2027-01-02T03:04:05Z"),
        Outcome("price-order", "core", "contradicted", True, [2, 1], exchanges=1, last="2027-01-03T03:04:05Z"),
    )
    result = RunResult("Nexar", "2027-02-01", "1.0", Plan(), RunCost(0, 0, 0, 0), seen, exchanges=20)
    text = page.render(catalogue, evidence.merge({}, result, catalogue))
    assert "**Sandbox: not observed.** **Nexar: observed in 12 exchanges, last 2027-01-02.**" in text
    assert "contradicted: observed in 1 exchange, last 2027-01-03: `[2,1]`" in text


def _search(arguments: str, **value: Any) -> UpstreamExchange:
    return UpstreamExchange(
        {"data": {"supSearch": value}}, query=f"{{ supSearch({arguments}) {{ {_fields(value)} }} }}"
    )


def _fields(value: Any) -> str:
    if isinstance(value, list):
        return _fields(value[0])
    return " ".join(
        f"{name} {{ {_fields(below)} }}" if isinstance(below, dict | list) else name for name, below in value.items()
    )


def _errors(*messages: str, **more: Any) -> UpstreamExchange:
    return UpstreamExchange({"errors": [{"message": each, **more} for each in messages]}, status=200)


def _match(query: str, hits: int, parts: int) -> UpstreamExchange:
    found = {"hits": hits, "parts": [{"mpn": "A-1"}] * parts}
    query = f"{{ supMultiMatch(queries: [{{{query}}}]) {{ hits parts {{ mpn }} }} }}"
    return UpstreamExchange({"data": {"supMultiMatch": [found]}}, query=query)


def _categories(**root: Any) -> UpstreamExchange:
    value = {"id": "4161", "children": [{"numParts": 4}, {"numParts": 5}], **root}
    return UpstreamExchange({"data": {"supCategories": [value]}}, query=f"{{ supCategories {{ {_fields(value)} }} }}")


COUNTS = ("datasheets", "descriptions", "images", "offers", "reference_designs", "sellers", "similar_parts")
START, LIMIT = "start must be between 0 and 1000", "limit must be between 0 and 100"
UUID = "a43cf3e2-e319-4453-a1e9-59063ef113b4"


@pytest.mark.parametrize(
    "id, confirms, contradicts",
    [
        ("range-errors-together", _errors(START, LIMIT), _errors(LIMIT, START)),
        (
            "unknown-field-message",
            _errors("The field `a` does not exist on the type `B`."),
            _errors("Field a does not exist on B"),
        ),
        (
            "missing-scope-path",
            _errors("The current user is not authorized to access this resource.", path=["a"]),
            _errors("The current user is not authorized to access this resource.", path=["a", 0]),
        ),
        (
            "request-id-of-errors",
            UpstreamExchange({"errors": [{"message": "no"}], "extensions": {"requestId": UUID}}),
            UpstreamExchange({"errors": [{"message": "no"}], "extensions": {"requestId": "7"}}),
        ),
        ("manufacturer-alone", _match('manufacturer: "X"', 9, 3), None),
        ("default-match-limit", _match('mpn: "A-1"', 9, 3), _match('mpn: "A-1"', 9, 4)),
        ("search-description", _search('q: "x"', results=[{"description": "<strong>x</strong>"}]), None),
        ("value-filter-displayed", _search('q: "x", filters: {capacitance: ["100 nF"]}', hits=3), None),
        ("sort-key-of-attribute", _search('q: "x", sort: "capacitance"', hits=3), None),
        (
            "category-counts",
            _search('q: "x"', hits=3, categoryAgg=[{"count": 2}]),
            _search('q: "x"', hits=3, categoryAgg=[{"count": 4}]),
        ),
        (
            "stock-counts",
            _search('q: "x"', hits=3, inStockAgg=[{"count": 2}, {"count": 1}]),
            _search('q: "x"', hits=3, inStockAgg=[{"count": 2}, {"count": 2}]),
        ),
        ("root-parent", _categories(parentId="4161"), _categories(parentId="0")),
        ("category-parts", _categories(numParts=9), _categories(numParts=8)),
        (
            "counts-of-part",
            UpstreamExchange({"data": {"supParts": [{"mpn": "A", "counts": dict.fromkeys(COUNTS, 1)}]}}),
            UpstreamExchange({"data": {"supParts": [{"mpn": "A", "counts": dict.fromkeys(COUNTS[1:], 1)}]}}),
        ),
    ],
)
def test_a_check_confirms_and_contradicts(
    id: str, confirms: UpstreamExchange, contradicts: UpstreamExchange | None
) -> None:
    assert _outcomes(confirms)[id].verdict == "confirmed"
    if contradicts is not None:
        assert _outcomes(contradicts)[id].verdict == "contradicted"
