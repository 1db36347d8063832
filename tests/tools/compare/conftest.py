"""Shared helpers for tests of comparisons: settings from text, a judge, and responses."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proxy.tools.compare import comparison
from proxy.tools.compare.judging import judge as judging
from proxy.tools.compare.judging.causes import Causes
from proxy.traffic.recordings import SideResponse
from proxy.traffic.v3_request import V3Request


@pytest.fixture(scope="session")
def causes() -> Any:
    return Causes()


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def of(text: Any, **environ: Any) -> Any:
        file = tmp_path / "ours.yaml"
        file.write_text(text, encoding="utf-8")
        return comparison.load_settings(file, environ)

    return of


@pytest.fixture
def judge(load: Any, causes: Any) -> Any:
    def of(text: str = "", redact: Any = lambda text: text, uids: frozenset[str] = frozenset()) -> Any:
        return judging.Judge(load(text).rules, causes, redact, uids)

    return of


@pytest.fixture
def response() -> Any:
    def of(value: Any, status: int = 200, **more: Any) -> Any:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return msgspec.structs.replace(SideResponse(status, body), **more)

    return of


@pytest.fixture
def v3_request() -> Any:
    return V3Request("/parts/match", (("queries", '[{"mpn":"X1"}]'),), client="erp", times=4, origin="access.log:7")
