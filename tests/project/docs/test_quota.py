"""docs/explanation/quota.md states the code's own figures and names."""

import re
from pathlib import Path
from typing import Any

import pytest

from proxy.config import loader
from proxy.gateway.quota import accounts
from proxy.telemetry import metrics

REPLIES = Path(__file__).parents[3] / "proxy" / "web" / "v3" / "responses.py"


@pytest.fixture(scope="module")
def words(pages: Any) -> Any:
    return " ".join(pages["docs/explanation/quota.md"].text.split())


def test_every_named_header_is_sent(pages: Any) -> None:
    named = {row[0].strip("`") for row in pages["docs/explanation/quota.md"].table("header")}
    assert named == set(re.findall(r'"(X-Parts-[A-Z][a-z]+)"', REPLIES.read_text(encoding="utf-8")))


def test_every_named_gauge_exists(words: Any) -> None:
    names = {gauge.name for gauge in vars(_metrics()).values() if isinstance(gauge, metrics.Gauge)}
    gauges = {name for name in names if name.startswith("v3bridge_parts_")}
    assert set(re.findall(r"`(v3bridge_parts_\w+)`", words)) == gauges


def test_examples_create_the_documented_quota_accounts(pages: Any, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    first, shares, second = (block.text for block in pages["docs/explanation/quota.md"].blocks("yaml"))
    file.write_text(first)
    (name, application), *_ = loader.load(file, {}).applications.items()
    keys = accounts.charged_accounts(name, application)
    assert [each.key.name for each in keys.values()] == ["demo/erp", "demo/2"]
    assert (keys["erp"].application.limit, keys["erp"].key.limit) == (1000, 500)
    file.write_text(shares)
    nightly = accounts.charged_accounts("demo", loader.load(file, {}).applications["demo"])["nightly"]
    assert [account.limit for account in nightly.limited] == [1_800, 600]
    (error,) = pages["docs/explanation/quota.md"].blocks("json", "fair share")
    assert nightly.left(nightly.limited[0], 0) in error.text
    file.write_text(second)
    assert loader.load(file, {}).applications["demo"].reconcile is not None


def _metrics() -> Any:
    import prometheus_client

    return metrics.Metrics(prometheus_client.CollectorRegistry())
