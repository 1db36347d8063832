"""SECURITY.md: every promise names a test that exists, a setting that exists, and its default."""

import re
from pathlib import Path
from typing import Any

import pytest

from proxy.config import reference

TESTS = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def rows(pages: Any) -> Any:
    text = pages["SECURITY.md"].text
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "::" in line]
    return [row for row in found if len(row) == 4]


def test_every_promise_names_a_test_that_exists(rows: Any) -> None:
    assert rows
    for promise, _, _, named in rows:
        file, _, function = named.strip("`").partition("::")
        defined = re.findall(r"^(?:async )?def (test_\w+)\(", (TESTS / file).read_text(), re.MULTILINE)
        assert function in defined, promise


def test_every_named_setting_has_the_documented_default(rows: Any) -> None:
    defaults = {row.name: row.default for row in reference.rows()}
    for _, setting, _, _ in rows:
        for name, default in re.findall(r"`([a-z]+\.[a-z_]+)` \((\d[\d.]*)", setting):
            stated = float(default) * (2**20 if "MiB" in setting else 1)
            assert stated == float(defaults[name]), name


def test_every_scenario_of_the_chaos_run_is_described(pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(TESTS.parent)
    from bench.chaos.scenarios import SCENARIOS

    text = " ".join(pages["CONTRIBUTING.md"].text.split())
    assert SCENARIOS
    assert [each.name for each in SCENARIOS if f"`{each.name.replace(' ', '-')}`" not in text] == []
