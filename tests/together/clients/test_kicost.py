"""KiCost, whole runs: 1.1.21 queries the GraphQL service itself, with and without a token; 1.1.12, the last one on PyPI
for v3, queries the proxy and the old service (contract graphql.md §9.1)."""

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from together.clients import kicost_runs, services

NEXAR, V3 = "1.1.21", "1.1.12"
# Its own test BOMs nexar_2 and nexar_3; a maker that is misspelt, and a number that two makers have.
BOM = [
    ("Kingbright", "APTF1616LSEEZGKQBKC"),
    ("Vishay Lite-On", "LTST-C193KSKT-5A"),
    ("Panasonic", "ERJ-3EKF3000V"),
    ("Panasonic", "ERJ-3EKF1001V"),
    ("Panasonic", "ERJ-3EKF6040V"),
    ("Samtec", "TMM-103-01-G-S"),
    ("MPD", "BU2032SM-BT-GTR"),
    ("Panasonic", "ERJ-3EKF4700V"),
    ("", "MBR1020VL"),
    ("Kemet", "C0603C475K8PACTU"),
    ("Adafruit Industries", "4062"),
    ("Texas Instrumentos", "SN74LS00N"),
]
# And of nexar_1 and nexar_4, so that it sends more than one request.
LONG_BOM = [
    *BOM,
    *(("Yageo", f"RC0603FR-07{value}L") for value in ("10R", "100R", "1K", "15K0", "47K", "1M8")),
    *(("Panasonic", f"ERJ3EKF{value}V") for value in ("1002", "1003", "1004", "1803", "2003", "2493")),
    *(("Coilcraft", f"LPS4018-{value}MRB") for value in ("103", "153", "473")),
    ("", "NC7SZ74K8X"),
    ("", "TPS61070DDCR"),
    ("", "LM2611BMF/NOPB"),
]
MATCH = """query($queries: [SupPartMatchQuery!]!) { supMultiMatch(queries: $queries) { reference hits parts { id
  sellers { company { name } offers { sku inventoryLevel prices { quantity price currency } } } } } }"""


class Sandbox:
    """A sandbox without authentication, and the URLs of its services."""

    def __init__(self, url: str) -> None:
        self.url, self.graphql_url, self.token_url = url, f"{url}/graphql", f"{url}/connect/token"

    def ask(self, query: str, **variables: Any) -> Any:
        return _json(self.graphql_url, {"query": query, "variables": variables})["data"]

    def parts_billed(self) -> int:
        return int(_json(f"{self.url}/admin/journal")["totals"]["parts"])

    def clear(self) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/admin/journal", method="DELETE")).close()


@pytest.fixture(scope="module")
def open_sandbox(running: Any) -> Iterator[Sandbox]:
    with running("sandbox", "--no-auth", "--part-limit", "100000") as url:
        yield Sandbox(url)


@pytest.fixture(scope="module")
def offered(open_sandbox: Sandbox) -> dict[str, list[Any]]:
    """The sellers of every part that has a number of the BOM."""
    queries = [{"reference": mpn, "mpn": mpn, "limit": 2} for _, mpn in LONG_BOM]
    found = open_sandbox.ask(MATCH, queries=queries)["supMultiMatch"]
    return {one["reference"]: [part["sellers"] for part in one["parts"]] for one in found}


def _json(url: str, body: Any = None) -> Any:
    sent = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, sent, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def _nexar(sandbox: Sandbox, folder: Path, parts: list[tuple[str, str]], **more: str) -> kicost_runs.Sheet:
    (folder / "cache").mkdir(exist_ok=True)
    return kicost_runs.run(
        NEXAR,
        folder,
        parts,
        KICOST_NEXAR_URL=sandbox.graphql_url,
        NEXAR_STORAGE_PATH=str(folder / "cache"),
        **{"NEXAR_CLIENT_ID": "of-nobody", "NEXAR_CLIENT_SECRET": "of-nobody", **more},
    )


def _agrees(line: kicost_runs.Line, offers: list[Any]) -> bool:
    """Whether the line agrees with these offers. KiCost adds a price for one piece if there is none."""
    codes = {offer["sku"] for offer in offers}
    stocks = {offer["inventoryLevel"] for offer in offers if offer["inventoryLevel"]}
    prices = {price["price"] for offer in offers for price in offer["prices"]}
    return line.code in codes and line.stock in stocks | {None} and set(line.prices.values()) <= prices


def test_kicost_without_a_token_fills_its_sheet(
    open_sandbox: Sandbox, offered: dict[str, list[Any]], tmp_path: Path
) -> None:
    open_sandbox.clear()
    sheet = _nexar(open_sandbox, tmp_path, LONG_BOM, KICOST_NEXAR_NO_TOKEN="1")
    assert open_sandbox.parts_billed() >= len(LONG_BOM)
    assert set(sheet) == {mpn for _, mpn in LONG_BOM}
    for mpn, lines in sheet.items():
        sellers = [{one["company"]["name"]: one["offers"] for one in part} for part in offered[mpn]]
        for column, line in lines.items():
            name = kicost_runs.SELLERS[column]
            assert any(_agrees(line, part.get(name, [])) for part in sellers), (mpn, column, line)
        if len(sellers) == 1:
            assert set(lines) == {column for column, name in kicost_runs.SELLERS.items() if name in sellers[0]}
    priced = [line for lines in sheet.values() for line in lines.values() if line.prices]
    assert len(priced) > len(LONG_BOM)
    assert {column for lines in sheet.values() for column in lines} == set(kicost_runs.SELLERS)


def test_kicost_with_credentials_gets_a_token_and_the_same_sheet(
    open_sandbox: Sandbox, running: Any, tmp_path: Path
) -> None:
    free, guarded = tmp_path / "free", tmp_path / "guarded"
    free.mkdir()
    guarded.mkdir()
    expected = _nexar(open_sandbox, free, BOM, KICOST_NEXAR_NO_TOKEN="1")
    # Every sandbox begins with the same applications.
    organization = open_sandbox.ask("{ admOrganizations { applications { security { clientId clientSecret } } } }")
    ready = organization["admOrganizations"][0]["applications"][0]["security"]
    with running("sandbox") as url:
        sandbox = Sandbox(url)
        sheet = _nexar(
            sandbox,
            guarded,
            BOM,
            NEXAR_CLIENT_ID=ready["clientId"],
            NEXAR_CLIENT_SECRET=ready["clientSecret"],
            TOKEN_URL=sandbox.token_url,
        )
        requests = _json(f"{url}/admin/journal")["totals"]["requests"]
        assert sandbox.parts_billed() > 0
    assert sheet == expected
    assert requests["token"] == 1


def test_kicost_uses_its_cache(open_sandbox: Sandbox, tmp_path: Path) -> None:
    first = _nexar(open_sandbox, tmp_path, BOM[:3], KICOST_NEXAR_NO_TOKEN="1")
    open_sandbox.clear()
    assert _nexar(open_sandbox, tmp_path, BOM[:3], KICOST_NEXAR_NO_TOKEN="1") == first
    assert open_sandbox.parts_billed() == 0


@services.both
def test_kicost_with_v3_fills_its_sheet(proxy_url: str, apikey: str, tmp_path: Path) -> None:
    """Without makers: it searches by number alone, and fails if no maker in the response is similar to that of the
    BOM."""
    match = f"{proxy_url}/api/v3/parts/match"
    sheet = _octopart(match, tmp_path, KICOST_OCTOPART_KEY_V3=apikey)
    queries = json.dumps([{"mpn": mpn, "reference": mpn} for _, mpn in BOM])
    found = _json(f"{match}?{urllib.parse.urlencode({'apikey': apikey, 'queries': queries})}")["results"]
    offers = {result["reference"]: [one for item in result["items"] for one in item["offers"]] for result in found}
    assert set(sheet) == set(offers)
    for mpn, lines in sheet.items():
        for column, line in lines.items():
            seller = [one for one in offers[mpn] if one["seller"]["name"] == kicost_runs.SELLERS[column]]
            assert line.code in {one["sku"] for one in seller}
            prices = {float(price) for one in seller for some in one["prices"].values() for _, price in some}
            assert set(line.prices.values()) <= prices
    priced = [line for lines in sheet.values() for line in lines.values() if line.prices]
    assert len(priced) > len(BOM)


@services.proxy
def test_kicost_with_v4_fills_the_same_sheet(proxy_url: str, apikey: str, tmp_path: Path) -> None:
    """By the REST wrapper of v4."""
    v3 = _octopart(f"{proxy_url}/api/v3/parts/match", tmp_path, KICOST_OCTOPART_KEY_V3=apikey)
    v4 = _octopart(f"{proxy_url}/api/v4/rest/parts/match", tmp_path, KICOST_OCTOPART_KEY_V4=apikey)
    assert v4 == v3 != {}


def _octopart(url: str, folder: Path, **key: str) -> kicost_runs.Sheet:
    parts = [("", mpn) for _, mpn in BOM]
    return kicost_runs.run(V3, folder, parts, KICOST_OCTOPART_URL=url, KICOST_OCTOPART_EXTENDED="1", **key)
