"""Parts of published programs and pages are in the catalog: KiCost's test BOMs (tests/*.xml and part_list_small.csv of
hildogjr/KiCost) and the vendor's example queries."""

import json
import re

import pytest
from support.sandbox_client import SandboxClient

MATCH = """query($queries: [SupPartMatchQuery!]!) { supMultiMatch(queries: $queries) {
  hits reference parts { mpn manufacturer { name } specs { displayValue } sellers { offers { sku } } } } }"""
# (manufacturer as the BOM spells it, numbers)
NEXAR_1_AND_4 = {
    "New Age Enclosures": "ACC-AANEG-5201 ACC-AAPOS-5223 ACC-AADBL-5212 S3A-361413",
    "Murata": """GRM21BR71A106KE51L GRM21BR71H105KA12L GRM188R61A226ME15D GRM188R61H225KE11D
        GRM1885C1H221JA01D""",
    "Walsin": "0603B104K500CT 0603N102J500CT",
    "Kemet": "C0603C103K5RACTU C0603C330J5GACTU",
    "TE Connectivity": "2041126-1",
    "NEUTRIK": "NP2X",
    "Rean": "RT3FC-B BRT-L RT3MPR",
    "DIODES": "ZHCS1000 AP3211KTR-G1",
    "Texas Instruments": "TPD4S009DCKR",
    "Coilcraft": "LPS4018-103MRB LPS4018-153MRB LPS4018-473MRB",
    "AMPHENOL FCI": "10103594-0001LF",
    "Panasonic": "ERJ3EKF1803V ERJ3EKF1002V ERJ3EKF1004V ERJ3EKF2003V ERJ3EKF2493V ERJ3EKF1003V ERJP03F47R0V",
    "Vishay": "CRCW06033K30FKEA CRCW06030000Z0EA",
    "Yageo": "RC0603FR-0747KL RC0603FR-0715K0L RC0603FR-071M8L RC0603FR-07100RL RC0603FR-071KL RC0603FR-0710RL",
    "ALPS": "SKHHLQA010",
    "": "HLMP-K150 SMAJ18A-TR NC7SZ74K8X TPS61070DDCR LM2611BMF/NOPB",
}
NEXAR_2_AND_3 = {
    "Kingbright": "APTF1616LSEEZGKQBKC",
    "Vishay Lite-On": "LTST-C193KSKT-5A",
    "Panasonic": "ERJ-3EKF3000V ERJ-3EKF1001V ERJ-3EKF6040V ERJ-3EKF4700V",
    "Samtec": "TMM-103-01-G-S",
    "MPD": "BU2032SM-BT-GTR",
    "Kemet": "C0603C475K8PACTU",
    "Adafruit Industries": "4062",
    "": "MBR1020VL SN74LS00N",
}
OCTOPART_2 = {
    "": """AMCA31-2R450G-S1F-T3 APAM1368YB13V3.0 1462000011 GMK107B7104KAHT GRM1885C1H103JA01D CC0402KRX5R6BB104
        CC0402KRX7R7BB822 GMK325BJ226MM-P CC0402JRNPO8BN271 JMK107BJ106MA-T JMK105BJ105KV-F SCCT20E106SRB
        CC0402KRX7R9BB561 GRM31CD80J107ME39L GRM1555C1H160JA01D GRM1555C1H330JA01D TPSMD30A SBR2A40P1Q-7 BAT54SLT1G
        PMEG3002EJ115 SS26FL 150060BS75000 150060VS75000 PFSM.050.2 MLPF-WB55-01E3 F6QA1G582H2JM-J 5019390400
        5013340000 SIM8060-6-0-14-00-A SMH100-LPSE-S10-ST-BK 0734120110 74437324033 HK100547NJ-TV BBBK00160808601Y00
        2N7002ET1G ZVP4424GTA BSS314PEH6327 MMBT3904LT3G ZVP4525ZTA ERJ-2RKF6802X RC0402FR-0712K1L RMCF0402JT100K
        RC0402FR-07100KL RC0402FR-0710KL RC0402JR-071KL RC0402JR-0710KL ERJ-P06J511V RC0402JR-070RL RC0402JR-0727RL
        RC0402JR-07100RL RC0402FR-0741K2L RC0402JR-072K7L RC0402FR-07240RL RC0402FR-07866RL RC0402FR-07374RL
        RC0402JR-0710RL LMR14020SQDPRRQ1 TPS63001DRCR LM339PWR ICM-42670-P MCP2561FD-H/MF TXB0104QRUT PESD1CAN-UX
        LM317LCPK STM32WB55CCU TPS26620DRCR W25N01GVZEIG 8Z-16.000MAAV-T"""
}
PART_LIST_SMALL = {"": "A759MW157M1JAAE048 ZLLS350TA ZHCS350TA ZHCS1000 VLMW1300-GS08 UWX1C220MCL1GB UWT1H101MNL1GS"}
VENDOR = {"": ["AR 32 HZL-TT", "FH12-5S-1SH(55)", "SN74S74N"]}


def queries(bom: dict[str, str | list[str]]) -> list[dict[str, str | int]]:
    found = [(maker, mpn) for maker, mpns in bom.items() for mpn in (mpns.split() if isinstance(mpns, str) else mpns)]
    return [
        {"reference": mpn, "mpn": mpn, "limit": 1, **({"manufacturer": maker} if maker else {})} for maker, mpn in found
    ]


@pytest.mark.parametrize(
    "bom",
    [NEXAR_1_AND_4, NEXAR_2_AND_3, OCTOPART_2, PART_LIST_SMALL, VENDOR],
    ids=["nexar_1 and nexar_4", "nexar_2 and nexar_3", "octopart_2", "part_list_small", "vendor"],
)
async def test_numbers_of_boms_have_specs_and_offers(caller: SandboxClient, bom: dict[str, str | list[str]]) -> None:
    found = (await caller.ask(MATCH, {"queries": queries(bom)})).data["supMultiMatch"]
    assert [one["reference"] for one in found if one["hits"] == 0] == []
    parts = [one["parts"][0] for one in found]
    assert [part["mpn"] for part in parts if len(part["specs"]) < 6] == []
    assert [part["mpn"] for part in parts if not any(seller["offers"] for seller in part["sellers"])] == []


async def test_the_vendors_acs770_search_has_full_pages(caller: SandboxClient) -> None:
    """Contract graphql.md §2.1, from the vendor's page on pagination: 15 of a search, and ten without the first two."""
    page = '{ supSearchMpn (q: "acs770", %s){ hits results { part { id name mpn } } } }'
    longer = (await caller.ask(page % "limit: 15")).data["supSearchMpn"]
    later = (await caller.ask(page % "start: 2")).data["supSearchMpn"]
    assert len(longer["results"]) == 15 < longer["hits"]
    assert later["results"] == longer["results"][2:12]


async def test_whole_prices_are_json_integers_and_others_are_not(caller: SandboxClient) -> None:
    """As recorded: 1 % of the prices have no decimal point."""
    query = '{ supSearch(q: "", limit: 100) { results { part { sellers { offers { prices { price } } } } } } }'
    raw = (await caller.ask(query)).raw.decode()
    prices = re.findall(r'"price":([0-9.e-]+)', raw)
    whole = [price for price in prices if isinstance(json.loads(price), int)]
    assert not any(price.endswith(".0") for price in prices)
    assert 0.003 < len(whole) / len(prices) < 0.03


async def test_the_vendors_example_filters_by_life_in_hours(caller: SandboxClient) -> None:
    query = (
        "query($f: Map) { supSearch(filters: $f) { results { part { mpn specs { attribute { shortname } value } } } } }"
    )
    found = (await caller.ask(query, {"f": {"life_hours_": ["(1000__5000)"]}})).data["supSearch"]["results"]
    assert "UVR1H100MDD" in {each["part"]["mpn"] for each in found}
    for each in found:
        values = {spec["attribute"]["shortname"]: spec["value"] for spec in each["part"]["specs"]}
        assert values["life_hours_"] == "2000"
