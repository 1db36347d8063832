"""Bills of materials as programs export them are filled without an option that says where anything stands."""

import csv
import shutil
from pathlib import Path

import pytest
from support import commands

from proxy.traffic import bom_columns

FOLDER = Path(__file__).parents[4] / "examples/boms"
PARTS = {"1N4007": ("onsemi", 2), "LM317T": ("STMicroelectronics", 1), "SN74S74N": ("Texas Instruments", 2)}
OTHERS = {"jlcpcb": {"1N4007": ("onsemi", 2), "GRM188R71H104KA93D": ("Murata", 5)}}
VALUES_ONLY = ("kicad", "kicad-pcb")  # without manufacturers, so that the maker is not known


@pytest.mark.parametrize("file", sorted(FOLDER.iterdir()), ids=lambda file: file.stem)
async def test_exported_bom_is_filled_without_an_option(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copy(file, tmp_path)
    asked = ("--columns", "mpn,manufacturer,total,price", "--offers", "none")
    result = await commands.wait(await commands.start(tmp_path, "sheet", "fill", file.name, *asked))
    text = bom_columns.decoded((tmp_path / f"{file.stem}.filled{file.suffix}").read_bytes())
    rows = csv.DictReader(text.splitlines(), delimiter=bom_columns.delimiter(text))
    filled = [row for row in rows if row["Nexar MPN"]]
    found = {
        row["Nexar MPN"]: (row["Nexar manufacturer"], float(row["Nexar total USD"]) / float(row["Nexar price USD"]))
        for row in filled
    }
    expected = OTHERS.get(file.stem, PARTS)
    if file.stem in VALUES_ONLY:
        assert {row["Nexar MPN"] for row in filled} == set(expected)
        assert "note: no column of part numbers: values are taken for them" in result.err
        return
    assert result.code == 0, result
    assert {name: (maker, round(pieces)) for name, (maker, pieces) in found.items()} == expected
    assert all(row["Nexar status"].startswith("found") for row in filled)
