"""Tests of comparison settings: values of a file, and messages about its mistakes."""

import hashlib
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import cases

from proxy import errors
from proxy.config import digest
from proxy.tools.compare import comparison
from proxy.tools.compare.comparison import ComparisonSettings
from proxy.tools.compare.judging import known

RULE = "reason: because, expires: never"


def test_shipped_file_holds_exactly_the_defaults() -> None:
    assert comparison.load_settings(None, {}) == ComparisonSettings()


def test_every_setting_is_in_the_shipped_file() -> None:
    """With every commented setting switched on, as its own first lines explain."""
    text = comparison.SHIPPED.read_text("utf-8").replace(": []\n", ":\n")
    written = yaml.safe_load(re.sub(r"(?m)^#(?=\S| {2,})(?!keys:|rules:)", "", text))
    assert set(written) == set(ComparisonSettings.__struct_fields__)
    assert set(written["keys"][0]) == {"name", "source", "baseline", "candidate"}
    assert set(written["rules"][0]) == {"path", "reason", "expires"}


def test_every_known_difference_has_a_documented_reason() -> None:
    page = Path(__file__).parents[3].joinpath("docs/v3-today.md").read_text("utf-8")
    assert [each.name for each in known.KNOWN if each.reason not in page] == []


def test_every_written_setting_is_loaded(load: Any, tmp_path: Path) -> None:
    (tmp_path / "new-key").write_text("n3w\n")
    found = load(
        f"""\
keys:
  - name: erp
    source: "sha256:{hashlib.sha256(b"1a2b3c4d").hexdigest()}"
    baseline: env:OLD
    candidate: file:new-key
rules: [{{path: a, cause: order, reason: because, expires: 2027-01-31}}]
baseline_rate: 1.5
""",
        OLD="0ld",
    )
    assert found.keys[0].source == digest("1a2b3c4d")
    assert (found.keys[0].baseline.reveal(), found.keys[0].candidate.reveal()) == ("0ld", "n3w")
    assert (found.rules[0].name, found.rules[0].expires) == ("a, order", date(2027, 1, 31))
    assert found.baseline_rate == 1.5


def test_repr_of_the_settings_shows_no_api_key(load: Any) -> None:
    shown = repr(load("keys: [{name: erp, source: s0urce, baseline: 0ld, candidate: n3w}]"))
    assert not any(key in shown for key in ("s0urce", "0ld", "n3w", hashlib.sha256(b"s0urce").hexdigest()))


@cases.parametrize("text, message")
def test_mistake_is_named_with_its_position(load: Any, text: str, message: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        load(text.replace("RULE", RULE))
    assert message in caught.value.message


@cases.parametrize("text")
def test_mistakes_show_no_api_key(load: Any, text: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        load(text)
    assert "s3cret" not in caught.value.message
    assert "keys" in caught.value.message
