"""Shared helpers for tests of comparisons: shipped mappings, settings from text, and responses."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proxy.tools.compare import loader
from proxy.tools.compare.judging import judge as judging
from proxy.tools.compare.judging import rules, v3_fields
from proxy.tools.compare.judging.causes import Causes
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse

TODAY = date(2026, 6, 1)


@pytest.fixture(scope="session")
def causes() -> Any:
    return Causes(v3_fields.load())


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Settings from a user's file."""

    def of(text: Any, **environ: Any) -> Any:
        file = tmp_path / "ours.yaml"
        file.write_text(text, encoding="utf-8")
        return loader.load(file, environ)

    return of


@pytest.fixture
def rule(load: Any) -> Any:
    """The one rule of a text such as `path: mpn, ignore: all`."""

    def of(text: Any) -> Any:
        settings = load(f"shipped_rules: false\nrules: [{{reason: because, expires: never, {text}}}]")
        return settings.rules[0]

    return of


@pytest.fixture
def judge(load: Any, causes: Any) -> Any:
    """A judge by the settings of a text; the shipped rules are out unless they are asked for."""

    def of(text: str = "shipped_rules: false", redact: Any = lambda text: text) -> Any:
        settings = load(text)
        return judging.Judge(settings, rules.RuleSet(settings.rules, causes, TODAY), causes, redact)

    return of


@pytest.fixture
def response() -> Any:
    def of(value: Any, status: int = 200, **more: Any) -> Any:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return msgspec.structs.replace(SideResponse(status, body, 0.1), **more)

    return of


@pytest.fixture
def v3_request() -> Any:
    return V3Request("/parts/match", (("queries", '[{"mpn":"X1"}]'),), client="erp", times=4, origin="access.log:7")
