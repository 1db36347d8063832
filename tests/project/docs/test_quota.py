"""docs/explanation/quota.md states the code's own figures and names."""

import re
from pathlib import Path
from typing import Any

import pytest

from proxy import config
from proxy.config import loader
from proxy.gateway.quota import accounts, exhaustion, forecast, ledger, reconciliation, reservations
from proxy.telemetry import metrics

REPLIES = Path(__file__).parents[3] / "proxy" / "web" / "v3" / "responses.py"


@pytest.fixture(scope="module")
def words(pages: Any) -> Any:
    return " ".join(pages["docs/explanation/quota.md"].text.split())


def test_documented_numbers_are_those_of_the_code(words: Any) -> None:
    *lower, highest = config.AlertSettings().thresholds
    assert f"{', '.join(map(str, lower))} or {highest} % unless `alerts.thresholds`" in words
    assert f"when it was not heard for {reservations.LEASE_SECONDS:.0f} seconds" in words
    assert f"each learns within {reservations.REFRESH_SECONDS:.0f} second what" in words
    assert "settled after a fifth of a second" in words
    assert ledger.SETTLE_SECONDS == 1 / 5
    assert f"The pace is that of the last {forecast.DAYS} days" in words
    assert (
        f"the last {reservations.DAYS_KEPT} days and {reservations.MONTHS_KEPT} months on which anything was spent"
        in words
    )
    assert f"Once in {reconciliation.INTERVAL_SECONDS / 3600:.0f} hours" in words
    assert exhaustion.WITHOUT_END_SECONDS == accounts.DAY_SECONDS


def test_every_named_header_is_sent(pages: Any) -> None:
    named = {row[0].strip("`") for row in pages["docs/explanation/quota.md"].table("header")}
    assert named == set(re.findall(r'"(X-Parts-[A-Z][a-z]+)"', REPLIES.read_text(encoding="utf-8")))


def test_every_named_gauge_exists(words: Any) -> None:
    names = {gauge.name for gauge in vars(_metrics()).values() if isinstance(gauge, metrics.Gauge)}
    gauges = {name for name in names if name.startswith("v3bridge_parts_")}
    assert set(re.findall(r"`(v3bridge_parts_\w+)`", words)) == gauges


def test_examples_create_the_documented_quota_accounts(pages: Any, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    first, second = (block.text for block in pages["docs/explanation/quota.md"].blocks("yaml"))
    file.write_text(first)
    (name, application), *_ = loader.load(file, {}).applications.items()
    keys = accounts.charged_accounts(name, application)
    assert [each.key.name for each in keys.values()] == ["demo/erp", "demo/2"]
    assert (keys["erp"].application.limit, keys["erp"].key.limit) == (1000, 500)
    file.write_text(second)
    assert loader.load(file, {}).applications["demo"].reconcile is not None


def _metrics() -> Any:
    import prometheus_client

    return metrics.Metrics(prometheus_client.CollectorRegistry())
