"""Tests of the benchmarks' configuration: as shipped except for addresses, credentials and a row's settings."""

from pathlib import Path
from typing import Any

import yaml

from bench import processes
from proxy.kit import shipped


def _flat(block: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(block, dict):
        return {path: block}
    return {key: value for name, each in block.items() for key, value in _flat(each, f"{path}.{name}").items()}


def _changed(made: dict[str, Any]) -> dict[str, Any]:
    before = _flat(yaml.safe_load(shipped.path("config.yaml").read_text("utf-8")))
    return {key[1:]: value for key, value in _flat(made).items() if key not in before or before[key] != value}


ADDRESSES = {
    "listen.port": 0,
    "upstream.graphql_url": "http://127.0.0.1:9/graphql",
    "upstream.token_url": "http://127.0.0.1:9/connect/token",
    "store": "sqlite:/state/state.sqlite",
    "applications.demo.client_id": "bench",
    "applications.demo.client_secret": "bench-secret",
}


def test_only_addresses_and_credentials_are_changed() -> None:
    assert _changed(processes.configuration(9, Path("/state"), {})) == ADDRESSES


def test_row_name_holds_the_changed_settings() -> None:
    made = processes.configuration(9, Path("/state"), processes.ALONE)
    assert _changed(made) == {**ADDRESSES, **processes.ALONE}
    assert processes.written(processes.ALONE) == "coalescing.enabled: false, cache.seconds: 0"
    assert processes.written({}) == "as shipped"


def test_floor_and_service_return_equal_parts(tmp_path: Path) -> None:
    with (
        processes.upstream() as upstream,
        processes.floor(upstream) as floor,
        processes.service(upstream, tmp_path) as service,
    ):
        target = processes.TARGET.replace("NUMBER", "1234")
        (by_hand,), (ours,) = (yaml.safe_load(each.body(target))["results"] for each in (floor, service))
        assert upstream.body("/count") == b"[2, 6]"
    assert [part["mpn"] for part in ours["items"]] == ["SN74S1234"] * 3
    assert (ours["hits"], ours["error"]) == (by_hand["hits"], by_hand["error"]) == (3, None)
    for mine, other in zip(ours["items"], by_hand["items"], strict=True):
        assert set(mine) == set(other)
        assert mine["mpn"] == other["mpn"]
        assert [offer["prices"] for offer in mine["offers"]] == [offer["prices"] for offer in other["offers"]]
    (log,) = tmp_path.rglob("log")
    assert "/v3/parts/match" in log.read_text("utf-8")
