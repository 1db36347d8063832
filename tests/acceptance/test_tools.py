"""The tools: a log compared with the sandbox, parts lists filled, and workbooks with the add-in's formulas."""

import csv
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from acceptance import running

MATCHED = ("SN74S74N", "LM358N", "1N4007", "NE555N", "SN74LS00N", "ATMEGA328P-PU", "BSS138", "2N2222A", "INA101HP")
SEARCHED = ("resistor", "flip-flop", "op+amp", "diode")
LINE = '198.51.100.7 - - [10/Oct/2018:09:{:02}:00 +0000] "GET /api/v3/parts/{} HTTP/1.1" 200 1297 "-" "agent"\n'
STOCK = "results[*].items[*].offers[*].in_stock_quantity"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """An access log of 9 matches and 4 searches."""
    calls = [f"match?apikey=EXAMPLE_KEY&queries=%5B%7B%22mpn%22%3A%22{mpn}%22%7D%5D" for mpn in MATCHED]
    calls += [f"search?apikey=EXAMPLE_KEY&q={words}&limit=5" for words in SEARCHED]
    file = tmp_path / "access.log"
    file.write_text("".join(LINE.format(minute, call) for minute, call in enumerate(calls)))
    return file


def compare(log: Path, folder: Path, *program: str) -> tuple[Any, Any, str]:
    """Compare the log with the sandbox; the command's end, its JSON result and its HTML page."""
    options = ["--baseline", "sandbox", "--config", str(running.ROOT / "config.yaml"), "--requests", str(log), "--yes"]
    words = [*(program or [running.PROGRAM]), "compare", *options, "--json", "result.json", "--html", "report.html"]
    done = running.run(words, folder)
    assert (folder / "result.json").exists(), done.stderr
    return done, json.loads((folder / "result.json").read_text()), (folder / "report.html").read_text()


def test_log_compared_with_the_sandbox_is_ready(log: Path, tmp_path: Path) -> None:
    done, result, page = compare(log, tmp_path)
    assert (done.returncode, result["verdict"]) == (0, "ready")
    assert done.stdout.startswith("Ready: ")
    assert [group["path"] for group in result["groups"] if group["counts"]] == []
    assert "Ready" in page
    assert "EXAMPLE_KEY" not in done.stdout + done.stderr + page + json.dumps(result)
    log.write_text(log.read_text().partition("\n")[0])
    assert compare(log, tmp_path)[0].returncode == 2  # inconclusive: one request proves nothing
    assert running.command("compare", "--no-such-option", folder=tmp_path).returncode == 3


def test_planted_defect_is_found_with_its_cause(log: Path, tmp_path: Path) -> None:
    """In a copy of the program one mapping reads another field of the offer."""
    copy = tmp_path / "copy"
    for name in ("proxy", "mappings"):
        shutil.copytree(running.ROOT / name, copy / name)
    shutil.copy(running.ROOT / "config.yaml", copy)
    mapping = copy / "mappings" / "offer.yaml"
    planted = mapping.read_text().replace("in_stock_quantity: inventoryLevel", "in_stock_quantity: onOrderQuantity")
    assert planted != mapping.read_text()
    mapping.write_text(planted)
    done, result, page = compare(log, copy, sys.executable, "-m", "proxy")
    assert (done.returncode, result["verdict"]) == (1, "not ready")
    assert done.stdout.startswith("Not ready: ")
    found = [group for group in result["groups"] if group["counts"]]
    assert {group["path"].replace("item.", "items[*].") for group in found} == {STOCK}
    assert {group["why"] for group in found} == {"PartOffer.in_stock_quantity is read from SupOffer.inventoryLevel"}
    assert all("inventoryLevel" in text for text in (done.stdout, page))


def configure(folder: Path, sandbox: running.Sandbox) -> None:
    own = f"applications: {{shop: {{apikeys: [a-key], {sandbox.credentials}, features: all}}}}"
    (folder / "own.yaml").touch(0o600)
    (folder / "own.yaml").write_text(f"{sandbox.upstream}\n{own}\n")


def fill(folder: Path, file: str, *options: str) -> tuple[Any, Any]:
    """Fill a parts list; the command's end and its summary."""
    done = running.command("sheet", "fill", file, "--config", "own.yaml", "--yes", "--json", *options, folder=folder)
    assert done.stdout, done.stderr
    return done, json.loads(done.stdout)


def values(file: Path) -> dict[str, Any]:
    """Return the values of the first sheet by address."""
    sheet = openpyxl.load_workbook(file, data_only=True).worksheets[0]
    return {cell.coordinate: cell.value for row in sheet.iter_rows() for cell in row}


def test_csv_is_filled_and_fetched_once(sandbox: running.Sandbox, processes: running.Processes) -> None:
    folder, before = processes.new_folder(), sandbox.parts
    configure(folder, sandbox)
    text = "Ref;Hersteller-Teilenummer;Hersteller;Menge\nU1;SN74S74N;Texas Instruments;100\nU2;NO-SUCH-PART;;1\n"
    (folder / "BOM.csv").write_text(text)
    columns = ("--columns", "price@100,stock,datasheet,manufacturer")
    done, summary = fill(folder, "BOM.csv", *columns)
    assert (done.returncode, summary["found"], summary["not_found"]) == (1, 1, 1)  # a line was not found
    assert sandbox.parts - before == summary["parts_spent"] == 1
    rows = list(csv.reader((folder / "BOM.filled.csv").read_text().splitlines(), delimiter=";"))
    assert rows[0][:4] == ["Ref", "Hersteller-Teilenummer", "Hersteller", "Menge"]
    found, missing = (dict(zip(rows[0], row, strict=True)) for row in rows[1:])
    assert (found["Nexar price @100 USD"], found["Nexar stock"]) == ("0.32897", "566063")
    assert found["Nexar datasheet"].startswith("http://datasheet.octopart.com/SN74S74N-Texas-Instruments")
    assert (found["Nexar manufacturer"], found["Nexar status"]) == ("Texas Instruments", "found")
    assert (missing["Nexar price @100 USD"], missing["Nexar status"]) == ("", "not found")
    assert (folder / "BOM.csv").read_text() == text
    again = fill(folder, "BOM.csv", *columns)[1]
    assert (again["parts_spent"], again["from_cache"], sandbox.parts - before) == (0, 2, 1)


def test_workbook_is_filled_with_columns(sandbox: running.Sandbox, processes: running.Processes) -> None:
    folder = processes.new_folder()
    configure(folder, sandbox)
    write(folder, {"A1": "MPN", "B1": "Manufacturer", "A2": "SN74S74N", "B2": "Texas Instruments"})
    assert fill(folder, "BOM.xlsx", "--columns", "price@100,stock,datasheet")[0].returncode == 0
    filled = values(folder / "BOM.filled.xlsx")
    assert (filled["C2"], filled["D2"], filled["F2"]) == (0.32897, 566063, "found")


def write(folder: Path, cells: dict[str, Any]) -> None:
    book = openpyxl.Workbook()
    for address, value in cells.items():
        book.active[address] = value
    book.save(folder / "BOM.xlsx")


def test_formulas_of_the_add_in_are_filled(sandbox: running.Sandbox, processes: running.Processes) -> None:
    """The login's token lasts over runs, until Refresh Login; results do, until Force Rerun All."""
    folder = processes.new_folder()
    configure(folder, sandbox)
    login = '=NEXAR_SUPPLY_LOGIN("{client_id}","{client_secret}")'.format(**sandbox.ways)
    formulas = {
        "A1": login,
        "A2": "SN74S74N",
        "B2": '=NEXAR_SUPPLY_DISTRIBUTOR_PRICE(A2,"Texas Instruments",,100)',
        "C2": "=NEXAR_SUPPLY_DISTRIBUTOR_STOCK($A2)",
        "D2": "=NEXAR_SUPPLY_DETAIL_URL(A2)",
        "E2": '=NEXAR_SUPPLY_MANUFACTURER_NAME("SN74S74N")',
        "A3": "NO-SUCH-PART",
        "B3": "=NEXAR_SUPPLY_DISTRIBUTOR_PRICE(A3)",
    }
    write(folder, formulas)
    before, tokens = sandbox.parts, sandbox.requests("token")

    def run(*options: str) -> tuple[dict[str, Any], int, int]:
        done, summary = fill(folder, "BOM.xlsx", *options)
        assert sandbox.ways["client_secret"] not in done.stdout + done.stderr
        assert (done.returncode, summary["cells"], summary["not_found"]) == (1, 5, 1), done.stderr
        return summary, sandbox.parts - before, sandbox.requests("token") - tokens

    summary, spent, asked = run()
    assert (summary["parts_spent"], asked) == (spent, 1)
    filled = values(folder / "BOM.filled.xlsx")
    assert filled["A1"] == "The Nexar Supply Add-in is ready!"
    assert (filled["B2"], filled["E2"], filled["B3"]) == (0.32897, "Texas Instruments", "#N/A")
    assert filled["C2"] > 0
    assert filled["D2"].startswith("https://octopart.com/")
    assert run()[1:] == (spent, 1)
    assert run("--force-rerun-all")[1:] == (2 * spent, 1)
    assert run("--refresh-login", "--force-rerun-all")[1:] == (3 * spent, 2)
    write(folder, {**formulas, "A1": login.replace("sandbox-secret", "wrong-secret")})
    running.command("sheet", "fill", "BOM.xlsx", "--config", "own.yaml", "--yes", "--force-rerun-all", folder=folder)
    assert (
        values(folder / "BOM.filled.xlsx")["A1"] == "Unable to login to Nexar application, check Client Id and Secret"
    )
