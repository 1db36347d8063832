"""An upstream whose lists change, whose parts cannot be decoded, which refuses what is too complex or not in the plan:
what a client gets, and what is booked."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from acceptance import bills
from acceptance.running import Operation, Processes, Service

ROOTS = {"supMultiMatch": "queries", "supParts": "ids"}
TOO_COMPLEX = {"message": "The operation is too complex.", "extensions": {"code": "HC0047"}}


NULLS = ("bestDatasheet", "bestImage", "category", "estimatedFactoryLeadDays", "freeSampleUrl", "medianPrice1000")
LISTS = ("akaMpns", "cad", "descriptions", "documentCollections", "images", "referenceDesigns", "sellers", "specs")


def part(number: int, **fields: Any) -> dict[str, Any]:
    """Return a part as the upstream has it."""
    maker = {"id": "370", "name": "Maker", "homepageUrl": None, "isVerified": False}
    own = {"v3uid": f"{number:016x}", "id": str(number), "mpn": f"N{number}", "manufacturer": maker, "totalAvail": 0}
    urls = {"manufacturerUrl": None, "octopartUrl": "https://octopart.com/part", "slug": "/part"}
    nothing: dict[str, Any] = dict.fromkeys(NULLS) | {name: [] for name in LISTS} | {"cad": None}
    return {**nothing, **own, **urls, "shortDescription": f"part {number}", **fields}


@dataclass
class Lists:
    """Upstream with a list of parts for each number. It bills what it returns, and what it refuses."""

    lists: dict[str, list[dict[str, Any]]]
    most: int = 1_000  # queries of an operation that is not too complex
    lacking: str = ""  # field that the plan has not
    nullable: bool = True
    seconds: float = 0.0
    billed: int = 0
    sizes: list[int] = field(default_factory=list)  # queries of each operation

    async def answer(self, operation: Operation) -> Any:
        name, variables = operation.name or "", operation.variables
        queries = variables.get(ROOTS.get(name, ""), [variables])
        pages = [self._page(query) for query in queries]
        self.billed += sum(len(page) for page, _ in pages)
        self.sizes.append(len(queries))
        await asyncio.sleep(self.seconds)
        if len(queries) > self.most:
            return {"errors": [TOO_COMPLEX]}
        reported = [
            {"message": f"{self.lacking} is not in your plan", "path": [name, place, "parts", 0, self.lacking]}
            for place, (page, _) in enumerate(pages)
            if self.lacking and f" {self.lacking}" in operation.query and page
        ]
        if reported and not self.nullable:
            return {"data": None, "errors": reported}
        data: Any = [{"hits": hits, "parts": page} for page, hits in pages]
        if name == "supParts":
            data = [page[0] if page else None for page, _ in pages]
        elif name != "supMultiMatch":
            results = [{"part": each, "akaMpn": None, "description": None} for each in pages[0][0]]
            data = {"hits": pages[0][1], "results": results}
        return {"data": {name: data}} | ({"errors": reported} if reported else {})

    def _page(self, query: Any) -> tuple[list[dict[str, Any]], int]:
        if isinstance(query, str):
            parts = [each for parts in self.lists.values() for each in parts if each["id"] == query]
            return parts[:1], len(parts)
        parts = self.lists.get(query.get("mpn") or query.get("q") or "", [])
        return parts[query["start"] : query["start"] + query["limit"]], len(parts)


Starts = Callable[..., Service]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as started:
        yield started


@pytest.fixture
def start(processes: Processes) -> Starts:
    def start(lists: Lists, **applications: str) -> Service:
        upstream = processes.upstream()
        upstream.answer = lists.answer
        chosen = applications or {
            "shop": f"{{client_id: a, client_secret: b, apikeys: [{bills.KEY}], plan: enterprise}}"
        }
        lines = "\n".join(f"  {name}: {settings}" for name, settings in chosen.items())
        return processes.service(f'{upstream.upstream}\nstore: "sqlite:store"\napplications:\n{lines}\n')

    return start


def search(service: Service, start: int, limit: int, q: str = "LIST") -> list[str]:
    """Return the numbers of a page of a search."""
    reply = service.get(f"/v3/parts/search?apikey={bills.KEY}&q={q}&start={start}&limit={limit}")
    assert reply.status == 200, reply.text
    return [each["item"]["mpn"] for each in reply.json["results"]]


def counted(service: Service) -> int:
    """Return the parts of the application that are used, uncertain or reserved."""
    usage = bills.usage(service)["shop"]
    return usage.used + usage.uncertain + usage.reserved


def test_list_that_grew_between_two_pages_is_fetched_anew(start: Starts) -> None:
    lists = Lists({"LIST": [part(number) for number in range(40)]})
    service = start(lists)
    assert search(service, 0, 10) == [f"N{number}" for number in range(10)]
    lists.lists["LIST"].insert(5, part(99))
    grown = [each["mpn"] for each in lists.lists["LIST"]]
    assert search(service, 10, 10) == grown[10:20]
    assert search(service, 0, 20) == grown[:20]
    assert lists.billed == counted(service) == 10 + (10 + 20)


def test_part_that_moved_to_a_later_page_is_not_shown_twice(start: Starts) -> None:
    lists = Lists({"LIST": [part(number) for number in range(40)]})
    service = start(lists)
    search(service, 0, 10)
    lists.lists["LIST"].insert(10, lists.lists["LIST"].pop(3))
    moved = [each["mpn"] for each in lists.lists["LIST"]]
    assert search(service, 10, 10) == moved[10:20]
    assert search(service, 0, 20) == moved[:20]
    assert lists.billed == counted(service) == 10 + (10 + 20)


def test_part_that_cannot_be_decoded_fails_alone_and_is_paid_once(start: Starts) -> None:
    lists = Lists({"N1": [part(1, mpn=5)], "N2": [part(2)]})
    service = start(lists)
    for _ in range(2):
        reply = service.get(bills.match("N1", "N2"))
        assert reply.status == 200
        bad, good = reply.json["results"]
        assert ([each["mpn"] for each in good["items"]], good["error"]) == (["N2"], None)
        assert bad["items"] == []
        assert f"{1:016x}" in bad["error"]
        assert "mpn" in bad["error"]
    assert lists.billed == counted(service) == 2


def test_operation_that_is_too_complex_is_halved(start: Starts) -> None:
    numbers = [f"N{number}" for number in range(8)]
    lists = Lists({number: [part(place)] for place, number in enumerate(numbers)}, most=2)
    service = start(lists)
    assert bills.found(service.get(bills.match(*numbers, limit=1))) == [f"N{place}" for place in range(8)]
    assert max(lists.sizes[3:]) <= 2
    assert lists.billed == counted(service)
    before = lists.billed
    service.restart()
    bills.found(service.get(bills.match(*numbers, limit=1)))
    assert lists.billed == before


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("plan", ["", ", plan: enterprise"])
def test_plan_that_lacks_a_feature_costs_one_attempt_at_most(start: Starts, nullable: bool, plan: str) -> None:
    lists = Lists({f"N{number}": [part(number)] for number in range(4)}, lacking="specs", nullable=nullable)
    application = f"{{client_id: a, client_secret: b, apikeys: [{bills.KEY}]{plan}}}"
    service = start(lists, shop=application)
    wanted = bills.match("N0", "N1", "N2", "N3", limit=1, more="&include[]=specs")
    for _ in range(2):
        reply = service.get(wanted)
        assert bills.found(reply) == ["N0", "N1", "N2", "N3"]
        assert "specs" in reply.headers["x-v3-unsupported"]
    attempt = 0 if nullable else 4 if plan else 1
    assert lists.billed == counted(service) == 4 + attempt


def test_application_without_parts_gets_what_another_one_pays_for(start: Starts) -> None:
    """Both have the same client id, so that they share what is stored and what is under way."""
    lists = Lists({"N1": [part(1)], "N2": [part(2)]}, seconds=1.0)
    own = "client_id: a, client_secret: b, plan: enterprise"
    service = start(lists, shop=f"{{{own}, apikeys: [{bills.KEY}]}}", poor=f"{{{own}, parts: 0, apikeys: [poor]}}")
    targets = [bills.match("N1"), bills.match("N1", key="poor"), bills.match("N2", key="poor")]
    rich, waiting, refused = bills.at_once(service.get, targets)
    assert (bills.found(rich), refused.status) == (["N1"], 429)
    # Who came first is not known: what is under way is shared, and nothing is begun for whom it does not fit.
    assert bills.found(waiting) == ["N1"] or waiting.status == 429
    assert bills.found(service.get(targets[1])) == ["N1"]
    assert lists.billed == counted(service) == 1
    assert bills.usage(service)["poor/1"].used == 0


def graphql(service: Service, document: str) -> Any:
    body = json.dumps({"query": document})
    return service.get("/graphql", method="POST", body=body, token=bills.KEY, content_type="application/json").json


def test_one_question_is_one_price_in_all_dialects(start: Starts) -> None:
    lists = Lists({f"N{number}": [part(number)] for number in range(60)})
    service = start(lists)
    numbers = [f"N{number}" for number in range(60)]

    def ask() -> None:
        for place in range(0, 60, 20):
            some = numbers[place : place + 20]
            for more in ("", "&include[]=specs", "&include[]=datasheets", "&include[]=specs&include[]=imagesets"):
                assert bills.found(service.get(bills.match(*some, more=more))) == some
            for form in ([each.lower() for each in some], [f"{each} " for each in some]):
                assert bills.found(service.get(bills.match(*form))) == some
        queries = quote(json.dumps([{"mpn": each, "brand": "Maker"} for each in numbers[:20]]))
        service.get(f"/v3/parts/match?apikey={bills.KEY}&queries={queries}")
        for number in range(60):
            assert service.get(f"/v3/parts/{number:016x}?apikey={bills.KEY}").status == 200
        ids = ", ".join(f'"{number:016x}"' for number in range(60))
        answered = graphql(service, f"{{ supParts(ids: [{ids}]) {{ mpn }} }}")
        assert [each["mpn"] for each in answered["data"]["supParts"]] == numbers

    ask()
    service.restart()
    ask()
    assert lists.billed == counted(service) == 60


def test_fields_that_the_plan_turns_out_to_lack_are_named(processes: Processes) -> None:
    upstream = processes.upstream()
    part: dict[str, Any] = {"v3uid": "4f1c0a9e5b1d7c33", "id": "1", "mpn": "N1", "akaMpns": [], "specs": None}
    lacking = {"message": "not in your plan", "path": ["supMultiMatch", 0, "parts", 0, "specs"]}
    found = {"data": {"supMultiMatch": [{"hits": 1, "parts": [part]}]}, "errors": [lacking]}
    upstream.answer = lambda _: found
    own = "applications: {shop: {apikeys: [a-key], client_id: shop, client_secret: a-secret}}"
    service = processes.service(f"{upstream.upstream}\n{own}")
    specs = "show[]=uid&include[]=specs&show[]=specs"
    for shown, further, named in ((specs, {"specs": {}}, "include[]=specs, show[]=specs"), ("show[]=uid", {}, None)):
        for _ in range(2):
            reply = service.get(f"/v3/parts/match?apikey=a-key&{shown}&queries=[{{%22mpn%22:%22N1%22}}]")
            assert reply.json["results"][0]["items"] == [{"uid": "4f1c0a9e5b1d7c33", **further}]
            assert reply.headers.get("x-v3-unsupported") == named
    assert len(upstream.operations) == 1
