"""Tests of the benchmarks' configuration: as shipped except for addresses, credentials and a row's settings."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench import bom, processes
from bench.ablated import OPTIMIZATIONS
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
    "admin.port": 0,
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
    assert processes.written(processes.ALONE) == 'coalescing.enabled: false, cache.seconds: 0, cache.fetch: "requested"'
    assert processes.written({}) == "as shipped"


def test_floor_its_peer_and_service_return_equal_parts(tmp_path: Path) -> None:
    with (
        processes.upstream() as upstream,
        processes.floor(upstream) as floor,
        processes.floor_structs(upstream) as peer,
        processes.service(upstream, tmp_path) as service,
    ):
        target = processes.TARGET.replace("NUMBER", "1234")
        bodies = [server.body(target) for server in (floor, peer, service)]
        assert upstream.body("/count") == b"[3, 9]"
    (by_hand,), (with_structs,), (ours,) = (json.loads(body)["results"] for body in bodies)
    assert with_structs == by_hand
    assert max(map(len, bodies)) / min(map(len, bodies)) < 1.02
    assert [part["mpn"] for part in ours["items"]] == ["SN74S1234"] * 3
    assert (ours["hits"], ours["error"]) == (by_hand["hits"], by_hand["error"]) == (3, None)
    for mine, other in zip(ours["items"], by_hand["items"], strict=True):
        assert set(mine) == set(other)
        assert mine["mpn"] == other["mpn"]
        assert [set(offer) for offer in mine["offers"]] == [set(offer) for offer in other["offers"]]
        assert [offer["prices"] for offer in mine["offers"]] == [offer["prices"] for offer in other["offers"]]
    (log,) = tmp_path.rglob("log")
    assert "/v3/parts/match" in log.read_text("utf-8")


def test_canned_upstream_has_as_many_parts_as_it_was_started_with(tmp_path: Path) -> None:
    with processes.upstream(0, 1) as upstream, processes.service(upstream, tmp_path) as service:
        (result,) = json.loads(service.body(processes.SAME))["results"]
        assert (len(result["items"]), upstream.body("/count")) == (1, b"[1, 1]")


def test_load_counts_every_response_and_the_cpu_time_of_both_sides() -> None:
    with processes.constant(1000) as server:
        result = processes.load(server, processes.SAME, 0.2)
        assert result.rate > 0
        assert 0 < result.p50 <= result.p99
        assert min(result.cpu, result.load_cpu) > 0


def test_load_of_refused_requests_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with processes.constant(1000) as server, pytest.raises(RuntimeError, match="ended with an error"):
        processes.load(server, "/nowhere", 0.2)
    assert "HTTP/1.1 404 Not Found" in capfd.readouterr().err


@pytest.mark.parametrize("lines, distinct", bom.DISTINCT.items())
def test_bill_of_materials_has_so_many_lines(lines: int, distinct: int) -> None:
    numbers = bom.part_numbers(lines)
    assert (len(numbers), len(set(numbers))) == (lines, distinct)
    assert numbers == bom.part_numbers(lines) != sorted(numbers)


# The same command for each optimization, in copies of one process: imports take most of the time of a command.
WITHOUT_EACH = """
import os, sys
import typer._adapters  # which typer imports when it parses options
from bench import ablated
from proxy.cli import main
from proxy.telemetry.metrics import Counter
sys.argv[1:] = ["--version"]
for name, optimization in ablated.OPTIMIZATIONS.items():
    child = os.fork()
    if child == 0:
        optimization.remove()
        Counter("counted", "Counted", "label")["value",] += 1
        try:
            main.main()
        except SystemExit as exit:
            os._exit(exit.code or 0)  # not freeing memory, which takes longer than the command
    _, status = os.waitpid(child, 0)
    print(f"{name}: {os.waitstatus_to_exitcode(status)}", file=sys.stderr)
"""


def test_each_optimization_can_be_taken_out() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_EACH], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines() == [f"{name}: 0" for name in OPTIMIZATIONS]
