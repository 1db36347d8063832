"""Tests of comparison settings: values of a file, and messages about its mistakes."""

import hashlib
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from support import cases

from proxy import errors
from proxy.config import digest
from proxy.kit import shipped
from proxy.tools.compare import loader
from proxy.tools.compare.judging.settings import ComparisonSettings, ReadinessSettings
from proxy.tools.compare.judging.tolerances import Tolerance

RULE = "reason: because, expires: never"


def test_missing_setting_has_its_default(load: Any) -> None:
    assert load("shipped_rules: false") == ComparisonSettings(shipped_rules=False)


def test_every_written_setting_is_loaded(load: Any, tmp_path: Path) -> None:
    (tmp_path / "new-key").write_text("n3w\n")
    found = load(
        f"""\
shipped_rules: false
keys:
  - name: erp
    source: "sha256:{hashlib.sha256(b"1a2b3c4d").hexdigest()}"
    baseline: env:OLD
    candidate: file:new-key
fail_on: [missing-part, price>1%]
ready: {{share: 0.95, min_requests: 20}}
latency: 1.5
budget: 500
""",
        OLD="0ld",
    )
    assert found.keys[0].source == digest("1a2b3c4d")
    assert (found.keys[0].baseline.reveal(), found.keys[0].candidate.reveal()) == ("0ld", "n3w")
    assert [each.text for each in found.fail_on] == ["missing-part", "price>1%"]
    assert found.ready == ReadinessSettings(0.95, 20)
    assert (found.latency, found.budget) == (1.5, 500)


def test_repr_of_the_settings_shows_no_api_key(load: Any) -> None:
    shown = repr(load("keys: [{name: erp, source: s0urce, baseline: 0ld, candidate: n3w}]"))
    assert not any(key in shown for key in ("s0urce", "0ld", "n3w", hashlib.sha256(b"s0urce").hexdigest()))


def test_rule_has_three_forms(rule: Any) -> None:
    assert rule("path: a, ignore: all").ignore == "all"
    assert rule("path: a, ignore: order").ignore == ("order",)
    assert rule("path: a, tolerate: {relative: 0.01, seconds: 5}").tolerate == Tolerance(relative=0.01, seconds=5)
    assert rule("path: a, normalize: [trim, lower-case]").normalize == ("trim", "lower-case")


def test_rule_without_name_is_named_by_its_line(load: Any) -> None:
    rules = (f"  - {{path: a, ignore: all, {RULE}}}", f"  - {{path: b, ignore: all, name: b's, {RULE}}}")
    text = "\n".join(("shipped_rules: false", "rules:", *rules))
    assert [rule.name for rule in load(text).rules] == ["ours.yaml:3", "b's"]


def test_rule_expires_on_its_day_or_never(rule: Any) -> None:
    assert rule("path: a, ignore: all").expires is None
    text = "path: a, ignore: all, endpoint: [/parts/match, '/parts/{uid}']"
    assert rule(text).endpoint == ("/parts/match", "/parts/{uid}")


def test_shipped_rules_follow_those_of_the_file(load: Any) -> None:
    there = loader.load(None, {}).rules
    found = load(f"rules: [{{path: a, ignore: all, {RULE}}}]").rules
    assert found[0].path == "a"
    assert found[1:] == there


def test_rule_replaces_the_shipped_rule_of_its_name(load: Any) -> None:
    found = load("rules: [{name: msec, path: msec, tolerate: {absolute: 5}, reason: r, expires: 2027-01-31}]").rules
    assert len(found) == len(loader.load(None, {}).rules)
    assert [(rule.tolerate, rule.expires) for rule in found if rule.name == "msec"] == [
        (Tolerance(absolute=5), date(2027, 1, 31))
    ]


def test_shipped_file_by_path_has_its_rules_once() -> None:
    assert loader.load(shipped.path("compare.yaml"), {}) == loader.load(None, {})


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


def test_unnamed_rules_of_one_line_have_distinct_names(load: Any) -> None:
    with pytest.raises(errors.ConfigError, match=r"the name ours\.yaml:1 is already given"):
        load(f"rules: [{{path: a, ignore: all, {RULE}}}, {{path: b, ignore: all, {RULE}}}]")
