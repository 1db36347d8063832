"""docs/how-to/compare.md is true where it can be held: its configuration, its commands, its reasons, its numbers."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from proxy import config
from proxy.cli import main
from proxy.config import loader
from proxy.tools.compare.command.shadow import ShadowAction

SOURCES = Path(__file__).parents[3] / "proxy" / "shadow"


@pytest.fixture(scope="module")
def page(pages: Any) -> Any:
    return pages["docs/how-to/compare.md"]


def test_documented_configuration_loads_with_the_documented_meaning(page: Any, tmp_path: Path) -> None:
    (block,) = page.blocks("yaml")
    file = tmp_path / "config.yaml"
    file.write_text(block.text)
    loaded = loader.load(file, {"NEXAR_CLIENT_ID": "id", "NEXAR_CLIENT_SECRET": "secret"})
    assert {name: each.shadow for name, each in loaded.applications.items()} == {
        "shop": config.ApplicationShadowSettings(share=0.05),
        "warehouse": config.ApplicationShadowSettings(share=0.01, response="baseline"),
    }


def test_documented_reasons_are_exactly_those_of_the_code(page: Any) -> None:
    code = "".join((SOURCES / name).read_text() for name in ("queue.py", "job.py"))
    found = set(re.findall(r'_count_dropped\(parsed, "([a-z ]+)"\)', code))
    found |= set(re.findall(r'return "([a-z]+)"(?: if|\n)', code)) | set(re.findall(r'application, "(off)"\]', code))
    assert {row[0].strip("`") for row in page.table("reason")} == found


def test_every_documented_command_exists(page: Any) -> None:
    (block,) = page.blocks("sh", "shadow")
    actions = re.findall(r"^v3bridge shadow *(\w*)", block.text, re.MULTILINE)
    assert {action or "status" for action in actions} == set(ShadowAction)
    assert CliRunner().invoke(main.program(), ["shadow", "--help"]).exit_code == 0
