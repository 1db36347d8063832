"""Tests of compare.yaml: it agrees with the settings and their defaults; its rules have documented reasons."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from proxy.tools.compare import loader
from proxy.tools.compare.judging.settings import (
    ComparisonSettings,
    IgnoreRule,
    ReadinessSettings,
)
from proxy.traffic.clients import ClientKeys

ROOT = Path(__file__).parents[3]
FILE = ROOT / "compare.yaml"


@pytest.fixture(scope="module")
def text() -> str:
    return FILE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def uncommented_file(text: str) -> str:
    """The file with every commented setting switched on, as its own first lines explain."""
    return re.sub(
        r"(?m)^#(?=\S| {2,}(?:- )?\w+: +\S)(?! +\w+: (all|a block|lower))", "", text.replace("\nkeys: []\n", "\n")
    )


def test_shipped_file_holds_exactly_the_defaults_beside_its_rules() -> None:
    assert msgspec.structs.replace(loader.load(None, {}), rules=()) == ComparisonSettings()


def test_every_setting_is_in_the_shipped_file(uncommented_file: str) -> None:
    written = yaml.safe_load(uncommented_file)
    assert set(written) == set(ComparisonSettings.__struct_fields__)
    assert set(written["keys"][0]) == set(ClientKeys.__struct_fields__)
    assert set(written["ready"]) == set(ReadinessSettings.__struct_fields__)
    shown = {name for rule in written["rules"] for name in rule} | {"tolerate"}
    assert shown == set(IgnoreRule.__struct_fields__)


@pytest.mark.parametrize("rule", loader.load(None, {}).rules, ids=lambda rule: rule.name)
def test_every_shipped_rule_has_a_name_and_a_documented_reason(rule: Any) -> None:
    page = (ROOT / "docs" / "reference" / "v3-surface.md").read_text(encoding="utf-8")
    assert not rule.name.startswith("compare.yaml")
    assert rule.reason in page
