"""docs/reference/sheet.md matches proxy/tools/sheet: columns, headings, rules, outcomes, templates, options."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from proxy.tools.sheet.columns import kinds, specs, statuses
from proxy.tools.sheet.command.filling import FILLED, FILLED_BESIDE, INCOMPLETE, NOT_FILLED
from proxy.tools.sheet.offers import OfferRules

OPTIONS = {"quantity": "[@QUANTITY]", "currency": "[:CURRENCY]", "distributor": "[:DISTRIBUTOR]", "spec": ":NAME"}


@pytest.fixture(scope="module")
def page(pages: Any) -> Any:
    return pages["docs/reference/sheet.md"]


def test_every_column_has_its_row(page: Any) -> None:
    assert page.table("column") == [
        [
            f"`{name}{''.join(OPTIONS[option] for option in kind.options)}`",
            specs.ColumnSpec(name).heading(specs.CURRENCY),
            kind.explanation,
        ]
        for name, kind in kinds.KINDS.items()
    ]


def test_every_rule_has_its_row(page: Any) -> None:
    rows = {row[1].strip("`"): row[0].strip("`").partition(" ")[0] for row in page.table("option")}
    assert rows == {name: f"--{name.replace('_', '-')}" for name in msgspec.structs.asdict(OfferRules())}


def test_every_outcome_and_exit_code_has_its_row(page: Any) -> None:
    assert [row[0] for row in page.table("status")] == list(statuses.OUTCOMES)
    assert [row[0] for row in page.table("code")] == [
        str(code) for code in (FILLED, INCOMPLETE, NOT_FILLED, FILLED_BESIDE)
    ]


def test_templates_are_valid(page: Any, tmp_path: Path) -> None:
    (block,) = page.blocks("yaml")
    file = tmp_path / "sets.yaml"
    file.write_text(block.text, encoding="utf-8")
    assert len(specs.load_template(f"{file}:buying").specs) == 8
    assert specs.load_template(f"{file}:engineering").rules == OfferRules()
