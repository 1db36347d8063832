"""Shared helpers for tests of comparisons: shipped mappings, settings from text, responses, and a minimal diff."""

import json
from datetime import date
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proxy.tools.compare import loader
from proxy.tools.compare.judging import judge as judging
from proxy.tools.compare.judging import rules, v3_fields
from proxy.tools.compare.judging.causes import Causes
from proxy.tools.compare.judging.findings import ABSENT, Difference
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse

TODAY = date(2026, 6, 1)


def plain_diff(baseline: Any, candidate: Any, path: str = "", place: str = "") -> Any:
    """Lists by position, and no matching of anything."""
    if isinstance(baseline, dict) and isinstance(candidate, dict):
        for key in [*baseline, *(key for key in candidate if key not in baseline)]:
            inner = (f"{path}.{key}".lstrip("."), f"{place}.{key}".lstrip("."))
            yield from _both(baseline.get(key, ABSENT), candidate.get(key, ABSENT), *inner)
    elif isinstance(baseline, list) and isinstance(candidate, list):
        for at, (one, other) in enumerate(zip_longest(baseline, candidate, fillvalue=ABSENT)):
            yield from _both(one, other, f"{path}[*]", f"{place}[{at}]")
    elif baseline != candidate:
        yield Difference("value" if type(baseline) is type(candidate) else "type", path, place, baseline, candidate)


def _both(baseline: Any, candidate: Any, path: Any, place: Any) -> Any:
    if candidate is ABSENT:
        yield Difference("missing", path, place, baseline=baseline)
    elif baseline is ABSENT:
        yield Difference("extra", path, place, candidate=candidate)
    else:
        yield from plain_diff(baseline, candidate, path, place)


def documents(baseline: Any, candidate: Any) -> Any:
    return list(plain_diff(baseline.value, candidate.value))


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
        return judging.Judge(settings, rules.RuleSet(settings.rules, causes, TODAY), causes, documents, redact)

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
