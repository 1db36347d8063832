"""Mappings as data. A folder beside this file is a case, and a new case is a new folder:

request.txt      targets of v3 requests, one a line, after their method where it is not GET; all have the same reply.
                 `apikey` is left out where it is the usual one. All other lines are remarks
upstream.json    what the service answers, one item an operation in order; a text is the name of a file in answers/
expected.json    the v3 reply; only what stands in it is compared, so a case can look at one field
reply.json       where it is not a 200 of JSON: its `status`, `content_type`, `headers`, how its text `starts` and
                 `ends` (expected.json is what stands between), or the whole `text`
operations.json  the upstream operations: the variables, and words that documents must (`asks`) or must not
                 (`omits`) hold; no file, no operation
settings.json    changes of the proxy's configuration

expected.json is compared by value, and may leave out fields. The bytes of every response are on record in responses.txt
beside this file, which `pytest tests/service/cases --renew-responses` renews, for a new case, too: those that ran, and
none if one fails.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import aiohttp
import pytest
from support import recorded_responses, running_proxy, scripted_upstream

from proxy import config
from proxy.explain import Explainer
from proxy.kit import clock
from proxy.traffic.v3_request import V3Request, parse_target

LISTS = {"supManufacturers", "supSellers", "supCategories", "supAttributes"}
SETTINGS = {"translation": {"single_query": "supSearchMpn"}}
HERE = Path(__file__).parent
CASES = sorted(folder for folder in HERE.iterdir() if (folder / "request.txt").exists())
TARGET = re.compile(r"(?:([A-Z]+) )?(/.+)")


def _targets() -> list[Any]:
    """Every case with each of its targets."""
    found = []
    for case in CASES:
        lines = (case / "request.txt").read_text().splitlines()
        targets = [match.groups() for line in lines if (match := TARGET.fullmatch(line))]
        assert targets, f"{case.name}/request.txt has no target"
        for number, (method, target) in enumerate(targets, 1):
            name = f"{case.name}-{number}" if len(targets) > 1 else case.name
            found.append(pytest.param(case, method or "GET", target, id=name))
    return found


@pytest.fixture(autouse=True)
def _one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations reach the service in the order they were planned."""
    monkeypatch.setattr(config, "UPSTREAM_CONNECTIONS", 1)


@pytest.fixture(scope="module")
def recording(request: pytest.FixtureRequest) -> Iterator[recorded_responses.RecordedResponses]:
    with recorded_responses.opened(HERE / "responses.txt", request) as opened:
        yield opened


TARGETS = _targets()


@pytest.mark.parametrize("case, method, target", TARGETS)
async def test_response_and_operations_match_the_case(
    case: Path,
    method: str,
    target: str,
    recording: recorded_responses.RecordedResponses,
    request: pytest.FixtureRequest,
) -> None:
    response = await run_case(case, method, target)
    name, test = request.node.callspec.id, request.node.nodeid
    difference = recording.difference(name, test, response, await response.text())
    assert not difference, difference


def test_recorded_responses_are_of_cases(
    recording: recorded_responses.RecordedResponses, request: pytest.FixtureRequest
) -> None:
    gone = recording.keep_only({str(target.id) for target in TARGETS}, request.node.nodeid)
    assert not gone, gone


async def run_case(case: Path, method: str, target: str) -> aiohttp.ClientResponse:
    """Check a target of a case by all files of the case; the response has been read."""
    async with scripted_upstream.running() as upstream:
        upstream.respond_with(*_answers(case))
        if len(_searches(case)) > 1:
            upstream.choose = _by_page(case)
        options = {**SETTINGS, **_read(case, "settings.json", {})}
        options["application"] = {"features": "all", **options.get("application", {})}
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url, **options)
        async with running_proxy.running(settings, clock.ManualClock()) as client:
            response = await client.get(_with_key(target), method=method)
            text = await response.text()
    _check_reply(response, text, {"status": 200, "content_type": "application/json", **_read(case, "reply.json", {})})
    frame = _read(case, "reply.json", {})
    json_text = text.removeprefix(frame.get("starts", "")).removesuffix(frame.get("ends", ""))
    body = json.loads(json_text) if json_text.startswith(("{", "[")) else None
    if (case / "expected.json").exists():
        assert _part_of(body, _read(case, "expected.json", None), "reply") == []
    _check_operations(upstream.requests, _read(case, "operations.json", []))
    await _check_explanation(settings, method, _with_key(target), response, body, upstream.requests)
    return response


def _read(case: Path, name: str, default: Any) -> Any:
    path = case / name
    return json.loads(path.read_text()) if path.exists() else default


def _answers(case: Path) -> list[Any]:
    return [_answer(item) for item in _read(case, "upstream.json", [])]


async def _check_explanation(
    settings: config.Config, method: str, target: str, response: aiohttp.ClientResponse, body: Any, sent: list[Any]
) -> None:
    """`v3bridge explain` knows the error, or else what is sent and what is ignored."""
    try:
        path, query, apikey = parse_target(target)
    except ValueError:
        assert response.status in (404, 405)
        return
    names = {each["operationName"] for each in sent}
    if apikey != running_proxy.KEY or names & LISTS:
        return  # which names are in the lists of the upstream is not known
    explainer = Explainer(settings)
    explained, _ = await explainer.explain(V3Request(path, query), explainer.client(apikey), apikey, method)
    is_error = isinstance(body, dict) and str(body.get("__class__")).endswith("ErrorResponse")
    if explained.error and body is not None:
        assert response.status in (explained.status, 200 if "suppress_status_codes" in target else None)
        # A suggested path has the prefix of the request.
        assert body["message"].replace("/api/v3", "/v3") == explained.error
        assert not names
    elif response.status == 200 and not is_error:
        assert names <= {*explained.free, *(each.name for each in explained.operations)}
        unsupported = unquote(response.headers.get("X-V3-Unsupported", "")).split(", ")
        ignored = {each.partition(" (")[0] for each in explained.ignored}
        assert {each for each in unsupported if each and not each.startswith("+")} <= ignored


def _answer(item: Any) -> Any:
    return json.loads((HERE / "answers" / item).read_text()) if isinstance(item, str) else item


def _with_key(target: str) -> str:
    if "apikey" in target:
        return target
    return f"{target}{'&' if '?' in target else '?'}apikey={running_proxy.KEY}"


def _check_reply(response: aiohttp.ClientResponse, text: str, expected: Any) -> None:
    assert response.status == expected["status"], text
    assert response.content_type == expected["content_type"]
    for name, value in expected.get("headers", {}).items():
        assert response.headers.get(name) == value, name
    assert text.startswith(expected.get("starts", ""))
    assert text.endswith(expected.get("ends", ""))
    assert text == expected.get("text", text)


def _check_operations(sent: list[Any], expected: list[Any]) -> None:
    sent = sorted(sent, key=_is_count)  # which are sent beside the page
    assert [operation["operationName"] for operation in sent] == [each["operation"] for each in expected]
    for operation, part in zip(sent, expected, strict=True):
        assert _part_of(operation["variables"], part["variables"], "variables") == []
        words = operation["query"].replace("{", " ").replace("(", " ").split()
        assert [word for word in part.get("asks", []) if word not in words] == []
        assert [word for word in part.get("omits", []) if word in words] == []


def _searches(case: Path) -> list[Any]:
    return [each for each in _answers(case) if isinstance(each, dict) and "supSearch" in (each.get("data") or {})]


def _by_page(case: Path) -> Callable[[Any], Any]:
    """Answer searches by a case: the first answer is that of the page and of what is counted under its filters, but
    for suggestions; the others are those of other counts, in order."""
    page, *others = _searches(case)
    shown = next(each for each in _read(case, "operations.json", []) if each["operation"] == "supSearch")
    filters = {name: values for name, values in shown["variables"].get("filters", {}).items() if name != "..."}

    def answer(operation: Any) -> Any:
        variables = operation["variables"]
        is_own = variables.get("filters", {}) == filters and "inStockOnly" not in variables
        if not _is_count(operation) or (is_own and variables.get("selection") != "WITH_SUGGESTED"):
            return page
        return others.pop(0)

    return answer


def _is_count(operation: Any) -> bool:
    return operation["operationName"] == "supSearch" and " results " not in operation["query"]


def _part_of(whole: Any, part: Any, at: str) -> list[str]:
    """List the paths where `whole` lacks `part`. Lists must be as long; an object may hold more, unless `"...": false`.

    `"..."` as a value is any value.
    """
    if part == "...":
        return []
    if isinstance(part, dict) and isinstance(whole, dict):
        names = {name for name in part if name != "..."}
        extra = sorted(set(whole) - names) if part.get("...") is False else []
        missing = [f"{at}.{name} is missing" for name in names - set(whole)]
        below = [line for name in names & set(whole) for line in _part_of(whole[name], part[name], f"{at}.{name}")]
        return missing + [f"{at}.{name} should not be there" for name in extra] + below
    if isinstance(part, list) and isinstance(whole, list):
        if len(part) != len(whole):
            return [f"{at} has {len(whole)} items, not {len(part)}"]
        return [line for n, (w, p) in enumerate(zip(whole, part, strict=True)) for line in _part_of(w, p, f"{at}[{n}]")]
    same = type(whole) is type(part) and whole == part
    return [] if same else [f"{at} is {whole!r}, not {part!r}"]


SECTIONS = ("§1 ", "§1.1 ", "§2 ", "§3 ", "§4 ")


def _rows() -> dict[str, list[str]]:
    """The cases of each row, by its text; a row that stands twice in one section would be a slip."""
    found: dict[str, list[str]] = {}
    section = ""
    for line in (HERE / "COVERED.md").read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif match := re.fullmatch(r"\| (.+) \| (.+) \|", line):
            row = f"{section}: {match[1]}"
            assert row not in found, f"{row} stands twice"
            found[row] = match[2].split(", ")
    return {row: cases for row, cases in found.items() if not row.endswith(": row")}


def test_cases_are_those_that_rows_of_the_contract_name() -> None:
    named = {case for cases in _rows().values() for case in cases}
    assert sorted(named ^ {case.name for case in CASES}) == []


def test_listed_sections_are_those_of_the_v3_contract() -> None:
    assert all(any(row.startswith(section) for row in _rows()) for section in SECTIONS)
