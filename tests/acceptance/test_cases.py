"""Every case of tests/service/cases over HTTP: status, content type and body are those on record in responses.txt.

Each target has an application and a key of its own in one service, and a script of its own at the upstream. Lists of
brands, sellers, categories and specs belong to all applications of a service, so that cases share one only if they
read the same lists; settings other than an application's own also take one of their own.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from acceptance import running

CASES = Path(__file__).parents[1] / "service" / "cases"
TARGET = re.compile(r"(?:([A-Z]+) )?(/.+)")
LISTS = {"supManufacturers", "supSellers", "supCategories", "supAttributes"}
NOTHING: dict[str, Any] = {"hits": 0, "error": None, "parts": []}


class Target(NamedTuple):
    """A request of a case. Its name is also that of its application, and its API key."""

    name: str
    case: str
    method: str
    path: str

    @property
    def with_key(self) -> str:
        """The path with the API key, unless it has one or says that it has none."""
        if "apikey" in self.path:
            return self.path.replace("EXAMPLE_KEY", self.name)
        return f"{self.path}{'&' if '?' in self.path else '?'}apikey={self.name}"


def targets() -> list[Target]:
    """Return the requests of all cases."""
    found = []
    for file in sorted(CASES.glob("*/request.txt")):
        lines = [match for line in file.read_text().splitlines() if (match := TARGET.fullmatch(line))]
        for number, line in enumerate(lines, 1):
            name = f"{file.parent.name}-{number}" if len(lines) > 1 else file.parent.name
            found.append(Target(name, file.parent.name, line[1] or "GET", line[2]))
    return found


def read(case: str, name: str, default: Any) -> Any:
    """Return the content of a case's file."""
    file = CASES / case / name
    return json.loads(file.read_text()) if file.exists() else default


@cache
def answers(case: str) -> list[Any]:
    """Return what the upstream responds in a case, in order."""
    given = read(case, "upstream.json", [])
    return [json.loads((CASES / "answers" / each).read_text()) if isinstance(each, str) else each for each in given]


def roots(answer: Any) -> set[str]:
    return set((answer.get("data") or {}) if isinstance(answer, dict) else ())


def group(case: str) -> str:
    """Return the same text for all cases that can share a service."""
    settings = read(case, "settings.json", {})
    lists = [each for each in answers(case) if roots(each) & LISTS]
    if any(each["operation"] in LISTS for each in read(case, "operations.json", [])) and not lists:
        return case  # a list that fails
    settings.pop("application", None)
    return json.dumps([settings, lists])


def groups() -> list[list[Target]]:
    """Return the targets of each service."""
    found = defaultdict(list)
    for target in targets():
        found[group(target.case)].append(target)
    return list(found.values())


GROUPS = groups()
LINES = [line.split(" ", 1) for line in (CASES / "responses.txt").read_text("utf-8").splitlines()]
RECORDED = {name: digest for digest, name in LINES}


def script(group: list[Target]) -> Callable[[running.Operation], Any]:
    """Return a function that answers each application by its case: with the first unused answer that has the field of
    the operation, or else the first; the last one is used again. The first of several supSearch is that of the page."""
    cases = {target.name: target.case for target in group}
    left = {name: list(answers(case)) for name, case in cases.items()}

    def answer(operation: running.Operation) -> Any:
        unused = left[operation.client_id]
        searches = [each for each in answers(cases[operation.client_id]) if "supSearch" in roots(each)]
        if operation.name == "supSearch" and len(searches) > 1:
            if is_of_page(operation, read(cases[operation.client_id], "operations.json", [])):
                return searches[0]
            unused = [each for each in unused if each is not searches[0]]
            left[operation.client_id] = unused
        fitting = [each for each in unused if any(re.search(rf"\b{root}\b", operation.query) for root in roots(each))]
        chosen = (fitting or unused)[0]
        if len(unused) > 1:
            unused.remove(chosen)
        return cut(chosen, len(operation.variables.get("queries", ())))

    return answer


def is_of_page(operation: running.Operation, operations: list[Any]) -> bool:
    """Return whether a search returns the page of a case, or counts under its filters; suggestions are apart."""
    page = next(each["variables"] for each in operations if each["operation"] == "supSearch")
    filters = {name: values for name, values in page.get("filters", {}).items() if name != "..."}
    counts = operation.variables.get("filters", {}) == filters and "inStockOnly" not in operation.variables
    return " results " in operation.query or (counts and operation.variables.get("selection") != "WITH_SUGGESTED")


def cut(answer: Any, queries: int) -> Any:
    """Return an answer of supMultiMatch for so many queries: equal ones are sent once."""
    found = (answer.get("data") or {}).get("supMultiMatch") if queries else None
    return {"data": {"supMultiMatch": found[:queries]}} if found and "errors" not in answer else answer


def configuration(upstream: str, group: list[Target]) -> str:
    """Return the configuration of the service of a group."""
    applications = {}
    for target in group:
        settings = read(target.case, "settings.json", {})
        own = {"apikeys": [target.name], "client_id": target.name, "client_secret": "a-secret", "features": "all"}
        applications[target.name] = {**own, **settings.get("application", {})}
    site = f", site: {settings['site']}" if "site" in settings else ""
    translation = {"single_query": "supSearchMpn", **settings.get("translation", {})}
    shared = f"{upstream[:-1]}{site}}}\ntranslation: {json.dumps(translation)}"
    return f"{shared}\napplications: {json.dumps(applications)}"


def digest(response: running.Response) -> str:
    """Return the digest of a response as it is on record, where a request takes no time."""
    text = re.sub(r'("msec": ?)\d+', r"\g<1>0", response.text)
    head = f"{response.status} {response.headers.get('content-type')}\n"
    return hashlib.sha256((head + text).encode()).hexdigest()[:12]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0].case)
def test_responses_are_those_on_record(processes: running.Processes, group: list[Target]) -> None:
    upstream = processes.upstream()
    upstream.answer = script(group)
    service = processes.service(configuration(upstream.upstream, group))
    got = {target.name: service.get(target.with_key, method=target.method) for target in group}
    different = [name for name, response in got.items() if digest(response) != RECORDED[name]]
    assert not different, (different, got[different[0]])


def test_every_response_on_record_is_compared() -> None:
    assert sorted(target.name for group in GROUPS for target in group) == sorted(RECORDED)
    assert len(RECORDED) == 422


def test_one_number_and_several_are_one_operation(processes: running.Processes) -> None:
    """One number is a query of supMultiMatch by default, with single_query one of supSearchMpn."""
    upstream = processes.upstream()

    def answer(operation: running.Operation) -> Any:
        queries = len(operation.variables.get("queries", ()))
        found = {"supMultiMatch": [NOTHING] * queries} if queries else {"supSearchMpn": {"hits": 0, "results": []}}
        return {"data": found}

    upstream.answer = answer
    own = "applications: {shop: {apikeys: [a-key], client_id: shop, client_secret: a-secret, features: all}}"
    for single in ("", "translation: {single_query: supSearchMpn}"):
        service = processes.service(f"{upstream.upstream}\n{single}\n{own}")
        for numbers in (["NE555P"], ["LM317T", "LM358N", "1N4148"]):
            queries = quote(json.dumps([{"mpn": number} for number in numbers]))
            found = service.get(f"/v3/parts/match?apikey=a-key&queries={queries}").json["results"]
            assert [result["hits"] for result in found] == [0] * len(numbers)
    sent = [(each.name, len(each.variables.get("queries", ()))) for each in upstream.operations]
    assert sent == [("supMultiMatch", 1), ("supMultiMatch", 3), ("supSearchMpn", 0), ("supMultiMatch", 3)]
