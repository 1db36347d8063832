"""Other people's clients, as they are on PyPI and npm, against the service in front of a sandbox.

None of their code is replaced. Set from outside are where they connect and the pauses between octopart's retries.
"""

import itertools
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gql
import octopart
import pytest
import retrying
from acceptance import running
from gql.transport.exceptions import TransportQueryError
from gql.transport.requests import RequestsHTTPTransport
from octocruncher import OctoCruncher
from octopart.client import OctopartClient
from octopart.exceptions import OctopartError
from pyoctopart.exceptions import Octopart503Error
from pyoctopart.octopart import Octopart
from support import kicost_runs

pytestmark = pytest.mark.filterwarnings("ignore::schematics.deprecated.SchematicsDeprecationWarning")

KEY = "EXAMPLE_KEY"
# More than 20, so that octopart sends two requests at once.
BOM = """
    2N2222A 7274-2-10 ABLS-16.000MHZ-B4-T AM29F040B-90JC ATMEGA328P-AU ATMEGA328P-PU BSS138 FT230XS-R INA101HP LM741CN
    MAX1724EZK33+T MC1488P MC6800P MC68000P10 MCP23017-E/SP NE555N PIC16F84A-04/P SKHHLQA010 SN74LS00N SN74LS04N
    SN74LS138N SN74LS245N SN74S74N TSL2561T
""".split()  # noqa: SIM905 - a list of words, not of quotes
# Uids of recorded v3 answers.
TEXAS, DIGIKEY, ROOT, RESISTORS = "2239e3330e2df5fe", "2c3be9310496fffc", "8a1e4714bb3951d9", "5c6a91606d4187ad"
# Of KiCost's own test BOMs.
KICOST_BOM = [
    *("APTF1616LSEEZGKQBKC", "LTST-C193KSKT-5A", "ERJ-3EKF3000V", "ERJ-3EKF1001V", "TMM-103-01-G-S"),
    *("BU2032SM-BT-GTR", "ERJ-3EKF4700V", "MBR1020VL", "C0603C475K8PACTU", "4062", "SN74LS00N"),
]
MATCH = "query ($q: [SupPartMatchQuery!]!) { supMultiMatch(queries: $q) { hits parts { mpn } } }"
SCRIPT = """
import { GraphQLClient } from "graphql-request"
const { url, key, document, variables } = JSON.parse(process.env.SENT)
const client = new GraphQLClient(url, { headers: { authorization: `Bearer ${key}` } })
const told = await client.request(document, variables).then(
  (data) => ({ data }), (error) => ({ status: error.response.status, errors: error.response.errors }))
console.log(JSON.stringify(told))
"""


@pytest.fixture(scope="module")
def sandbox(module_processes: running.Processes) -> running.Sandbox:
    return module_processes.sandbox("--part-limit", "100000")


@pytest.fixture(scope="module")
def service(module_processes: running.Processes, sandbox: running.Sandbox) -> running.Service:
    keys = f'apikeys: [{KEY}, {{key: "SMALL_KEY", parts: 1}}]'
    own = f"applications: {{shop: {{{sandbox.credentials}, {keys}, features: all}}}}"
    return module_processes.service(f"{sandbox.upstream}\n{own}")


@pytest.fixture(autouse=True)
def _connected(service: running.Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each client find the service; none waits between its attempts."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("OCTOPART_API_KEY", KEY)
    monkeypatch.setattr(OctopartClient.__init__, "__defaults__", (None, f"{service.url}/api/v3"))
    monkeypatch.setattr(retrying, "time", Hurried())
    monkeypatch.setattr(Octopart, "api_url", service.url + "/api/v%d/")
    monkeypatch.setattr(Octopart._get_data, "__defaults__", ({}, 2))  # parameters of a call leak into the next one


class Hurried:
    """Clock of octopart's retries, on which pauses end at once."""

    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_octopart_reads_every_part_and_offer_of_a_list() -> None:
    optional = ("specs", "datasheets", "descriptions", "imagesets", "category_uids")
    results = octopart.match([*BOM, *BOM[:3]], limit=1, **{f"include_{name}": True for name in optional})
    assert [[part.mpn for part in result.parts] for result in results] == [[mpn] for mpn in BOM]
    parts = [result.parts[0] for result in results]
    assert all(re.fullmatch("[0-9a-f]{16}", uid) for part in parts for uid in (part.uid, *part.category_uids))
    assert all(part.manufacturer and part.descriptions and part.specs is not None for part in parts)
    assert any(part.datasheets for part in parts)
    offers = [offer for part in parts for offer in part.offers]
    assert len(offers) > 100
    for offer in offers:
        assert offer.seller
        assert offer.sku
        assert offer.product_url.startswith("http")
        assert isinstance(offer.in_stock_quantity, int)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", offer.last_updated)
        for breaks in offer.prices.values():
            assert all(price > 0 for price in breaks.values())
            assert all(less < more for less, more in itertools.pairwise(breaks))
    assert {offer.in_stock_quantity for offer in offers} & {-1, -2, -3, -4}
    specs = parts[BOM.index("SN74S74N")].specs
    assert specs["max_frequency"].display_value == "110 MHz"
    assert (specs["operating_temperature"].min_value, specs["operating_temperature"].max_value) == ("0.0", "70.0")


def test_octopart_searches_with_filters_order_and_pages() -> None:
    found = octopart.search("SN74S74N", limit=100)
    assert [part.mpn for part in found.parts] == ["SN74S74N"] * 4 + ["SN74S74NE4", "SN74S74N3"]
    whole = [part.uid for part in octopart.search("resistor", limit=20, show=["uid"]).parts]
    assert [part.uid for part in octopart.search("resistor", start=5, limit=10, show=["uid"]).parts] == whole[5:15]
    texas = {"brand.name": "Texas Instruments"}
    some = octopart.search("flip-flop", limit=100, filter_fields=texas, sortby=[("mpn", "asc")], hide=["offers"]).parts
    assert {part.manufacturer for part in some} == {"Texas Instruments"}
    assert [part.mpn for part in some] == sorted(part.mpn for part in some)
    ohms = {"specs.resistance.value": "[1000 TO 10000]"}
    resistors = octopart.search("resistor", limit=100, filter_queries=ohms, include_specs=True).parts
    values = {float(part.specs["resistance"].value) for part in resistors}
    assert {1000.0, 10000.0} < values
    assert all(1000 <= value <= 10000 for value in values)
    with pytest.raises(OctopartError, match="HTTPError 400") as refused:
        octopart.search("flip-flop", sortby=[("flavor", "asc")])
    assert "sort by 'flavor'; it can by" in refused.value.__cause__.response.json()["message"]


def test_octopart_finds_brands_sellers_and_categories() -> None:
    assert (octopart.get_brand(TEXAS).name, octopart.get_seller(DIGIKEY).name) == ("Texas Instruments", "Digi-Key")
    assert {"Texas Instruments", "TAOS", "Burr Brown"} < {brand.name for brand in octopart.search_brand("texas")}
    assert [seller.name for seller in octopart.search_seller("*newark*")] == ["Newark"]
    best, *_ = octopart.search_category("resistors", sortby=[("score", "desc")])
    assert (best.uid, best.name) == (RESISTORS, "Resistors")
    assert best.ancestor_names == ["Electronic Parts", "Passive Components"]
    assert octopart.get_category(ROOT).num_parts > 300
    with pytest.raises(OctopartError, match="HTTPError 404"):
        octopart.get_brand("0123456789abcdef")
    with pytest.raises(OctopartError, match="HTTPError 403"):
        OctopartClient("no-such-key").match([{"mpn": "SN74S74N"}])


@pytest.fixture
def octocruncher_connects(service: running.Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has http://octopart.com compiled in, so the environment makes the service its HTTP proxy."""
    monkeypatch.setenv("http_proxy", service.url)
    monkeypatch.setattr(urllib.request, "_opener", None)  # urllib keeps the one it made for the environment before


@pytest.mark.usefixtures("octocruncher_connects")
def test_octocruncher_reads_every_field(monkeypatch: pytest.MonkeyPatch) -> None:
    found = OctoCruncher(mpn="SN74S74N")
    assert (found.getNumItems(), found.getMPN()) == (3, "SN74S74N")
    maker = found.getManufacturer()
    assert (maker.name, maker.homepage_url) == ("Texas Instruments", "http://ti.com")
    offers = [found.getOffer(number) for number in range(found.getNumOffers())]
    assert len(offers) > 10
    read = [*offers, *(offer.seller for offer in offers), found.getDatasheet(), found.getDescription(0)]
    # A missing field reads as ""; v3, too, sent "" for eligible_region.
    assert {name for each in read for name, value in vars(each).items() if value == ""} <= {"eligible_region"}
    assert (found.getSpec("pin_count").value, found.getSpecFuzzy("lifecycle").value) == ("14", "Production")
    assert OctoCruncher(mpn="MAX1724EZK33+T").getMPN() == "MAX1724EZK33+T"  # whose plus sign it does not escape
    nothing = OctoCruncher(mpn="NOSUCHPART-1")
    assert (nothing.getNumItems(), nothing.getMPN(), nothing.getAllSpecs()) == (0, "", [])
    monkeypatch.setenv("OCTOPART_API_KEY", "no-such-key")
    with pytest.raises(urllib.error.HTTPError) as refused:
        OctoCruncher(mpn="SN74S74N")
    with refused.value as reply:
        assert (reply.code, json.load(reply)["message"]) == (403, "Forbidden request")


def test_pyoctopart_matches_and_searches() -> None:
    client = Octopart(KEY)
    queries = [{"mpn": "SN74S74N", "limit": 20, "reference": "a"}, {"sku": "67K1122"}, {"mpn": "NOSUCHPART-1"}]
    reply, results = client.parts_match(queries)
    assert reply["__class__"] == "PartsMatchResponse"
    assert [result["reference"] for result in results] == ["a", None, None]
    assert [(result["hits"], len(result["items"])) for result in results] == [(4, 4), (1, 1), (0, 0)]
    exact = [client.parts_match([{"mpn": "ATMEGA328P-PU"}], exact_only=flag)[1][0]["hits"] for flag in (False, True)]
    assert exact == [2, 1]
    shown = client.parts_match(queries[:1], include_datasheets=True, show_mpn=True, show_datasheets=True)[1][0]
    assert set(shown["items"][0]) == {"mpn", "datasheets"}
    pages = [client.parts_search("resistor", start=start, limit=10)[1] for start in (0, 10, 20)]
    assert len({result["item"]["uid"] for page in pages for result in page}) == 30
    client.bom_match(["any"])  # v2's, and full of parameters that v3 never had, which its next call sends along
    assert client.parts_search("resistor", start=0, limit=10)[1] == pages[0]


def test_pyoctopart_raises_its_own_errors(sandbox: running.Sandbox) -> None:
    client = Octopart(KEY)
    assert client.parts_suggest_v2("sn74") is None  # /api/v2/parts/suggest: 404
    assert client.parts_get(1234567890123456) is None
    with pytest.raises(KeyError, match="'results'"):  # it decodes every reply as JSON and takes this out of it
        Octopart("no-such-key").parts_match([{"mpn": "SN74S74N"}])
    sandbox.inject("5xx status=503")
    try:
        with pytest.raises(Octopart503Error):
            client.parts_match([{"mpn": "LM317T"}])
    finally:
        sandbox.inject()


def test_kicost_gets_the_same_prices_by_v3_v4_and_graphql(service: running.Service, tmp_path: Path) -> None:
    def kicost(version: str, **variables: str) -> kicost_runs.Sheet:
        own = {"KICOST_OCTOPART_EXTENDED": "1", "NEXAR_STORAGE_PATH": str(tmp_path), "NEXAR_CLIENT_ID": "any"}
        return kicost_runs.run(version, tmp_path, [("", mpn) for mpn in KICOST_BOM], **own, **variables)

    v3_url, v4_url = (f"{service.url}/api/{path}/parts/match" for path in ("v3", "v4/rest"))
    v3 = kicost("1.1.12", KICOST_OCTOPART_URL=v3_url, KICOST_OCTOPART_KEY_V3=KEY)
    assert v3 == kicost("1.1.12", KICOST_OCTOPART_URL=v4_url, KICOST_OCTOPART_KEY_V4=KEY)
    url, token_url = f"{service.url}/graphql", f"{service.url}/connect/token"
    graphql = kicost("1.1.21", KICOST_NEXAR_URL=url, TOKEN_URL=token_url, NEXAR_CLIENT_SECRET=KEY)
    keyed = {"KICOST_NEXAR_URL": f"{url}?apikey={KEY}", "KICOST_NEXAR_NO_TOKEN": "1", "NEXAR_CLIENT_SECRET": "any"}
    assert graphql == kicost("1.1.21", **keyed)
    offered: dict[tuple[str, str], set[Any]] = defaultdict(set)  # the codes and prices of each number at each seller
    results = OctopartClient().match([{"mpn": mpn} for mpn in KICOST_BOM])["results"]
    for mpn, result in zip(KICOST_BOM, results, strict=True):
        for offer in (offer for part in result["items"] for offer in part["offers"]):
            prices = {float(price) for breaks in offer["prices"].values() for _, price in breaks}
            offered[mpn, offer["seller"]["name"]] |= {offer["sku"], *prices}
    for sheet in (v3, graphql):
        assert set(sheet) == set(KICOST_BOM)
        lines = [(mpn, seller, line) for mpn, sellers in sheet.items() for seller, line in sellers.items()]
        assert len([line for _, _, line in lines if line.prices]) > len(KICOST_BOM)
        for mpn, seller, line in lines:
            assert {line.code, *line.prices.values()} <= offered[mpn, kicost_runs.SELLERS[seller]]


def graphql_client(service: running.Service, key: str = KEY) -> gql.Client:
    transport = RequestsHTTPTransport(f"{service.url}/graphql", headers={"Authorization": f"Bearer {key}"})
    return gql.Client(transport=transport, fetch_schema_from_transport=True)


def test_gql_reads_the_schema_and_executes_what_it_allows(service: running.Service) -> None:
    document = gql.gql(MATCH)
    document.variable_values = {"q": [{"mpn": "SN74S74N", "limit": 1}]}
    found = graphql_client(service).execute(document)
    assert found == {"supMultiMatch": [{"hits": 4, "parts": [{"mpn": "SN74S74N"}]}]}
    document.variable_values = {"q": [{"mpn": "LM358N"}]}
    with pytest.raises(TransportQueryError, match="You have exceeded your part limit"):
        graphql_client(service, "SMALL_KEY").execute(document)


def test_graphql_request_gets_data_and_throws_errors(
    service: running.Service, needs_program: Callable[[str], str]
) -> None:
    node, installed = needs_program("node"), Path(sys.prefix) / "npm"
    if not (installed / "node_modules" / "graphql-request").is_dir():
        needs_program("npm")
        pytest.fail(f"graphql-request is not in {installed}: `make test` installs it", pytrace=False)

    def send(document: str, key: str = KEY, **variables: Any) -> Any:
        sent = {"url": f"{service.url}/graphql", "key": key, "document": document, "variables": variables}
        env = {"PATH": os.environ["PATH"], "SENT": json.dumps(sent)}
        command = [node, "--input-type=module", "-e", SCRIPT]
        return json.loads(subprocess.run(command, cwd=installed, env=env, capture_output=True, check=True).stdout)

    queries = [{"mpn": "SN74S74N", "limit": 1}]
    assert send(MATCH, q=queries)["data"]["supMultiMatch"][0]["parts"] == [{"mpn": "SN74S74N"}]
    wrong = send(MATCH, "wrong-key", q=queries)
    assert (wrong["status"], wrong["errors"][0]["extensions"]["code"]) == (401, "AuthInvalidToken")
    assert "nothing" in send("{ nothing }")["errors"][0]["message"]
