"""The command `compare` between the proxy and the sandbox's old service, on a log with requests of every kind."""

import dataclasses
import fcntl
import json
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support import commands
from together.conftest import starter
from together.environment import ProxyEnvironment, StartEnvironment
from together.tools.compare.comparison import KEY, CompareRequests

import nexar_sandbox
from proxy import config
from proxy.kit import clock
from proxy.traffic.v3_request import V3Request

UPSTREAM = {
    "legacy": nexar_sandbox.LegacySettings(requests_per_second=None),
    "applications": (dataclasses.replace(nexar_sandbox.DEFAULT_APPLICATION, part_limit=1_000_000),),
}
LISTS = ("brands", "sellers", "categories")
INCLUDES = (
    *("short_description", "descriptions", "imagesets", "datasheets", "compliance_documents", "reference_designs"),
    *("cad_models", "category_uids", "external_links", "broker_listings"),
)
LATEST = 500.0  # seconds that a comparison may take on a slow machine


@pytest.fixture(scope="module")
def start(catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey) -> StartEnvironment:
    return starter(catalog, signing_key, clock.ManualClock())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def environment(start: StartEnvironment) -> AsyncIterator[ProxyEnvironment]:
    """An environment of a test file."""
    async with start(sandbox=UPSTREAM) as opened:
        yield opened


@pytest.fixture(scope="session")
def learned_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File of the learned table of uids, shared by all test files and workers: each sandbox has the same uids."""
    folder = tmp_path_factory.getbasetemp()
    return (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "learned-uids.yaml"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def learned_environment(
    environment: ProxyEnvironment,
    start: StartEnvironment,
    learned_table: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[ProxyEnvironment]:
    """An environment whose proxy has a table of uids that was learned from both services."""
    with learned_table.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be at it: its result takes less time than a second one
        if not learned_table.exists():
            table = await _learn(environment, tmp_path_factory.mktemp("learned"))
            learned_table.write_text(table, encoding="utf-8")
    async with start(sandbox=UPSTREAM, uids=config.File(learned_table)) as opened:
        yield opened


async def _learn(environment: ProxyEnvironment, folder: Path) -> str:
    """Return the table that `compare --record` and `compare --learn-uids` produce from all lists and parts."""
    lists = [f"/{name}/search?limit=100&start={start}" for name in LISTS for start in range(0, 1000, 100)]
    # Offers and specs, three quarters of a response, have no uid that the lists and the other fields do not have.
    including = "&hide[]=offers"
    including += "".join(f"&include[]={name}" for name in INCLUDES)
    parts = [f"/parts/search?limit=50{including}&start={start}" for start in range(0, 1000, 50)]
    asked = [f"/v3{target}&apikey={KEY}\n" for target in (*lists, *parts)]
    (folder / "lists.txt").write_text("".join(asked), encoding="utf-8")
    (folder / "fast.yaml").write_text("baseline_rate: 0", encoding="utf-8")
    baseline = ("--baseline", environment.sandbox.legacy_url + "/v3", "--rules", "fast.yaml")
    recording = ("compare", *baseline, "--requests", "lists.txt", "--record", "lists.jsonl")
    for arguments in (recording, ("compare", "--learn-uids", "lists.jsonl")):
        found = await commands.wait(await commands.start(folder, *arguments), LATEST)
        assert found.code == 0, found
    return found.out


@pytest.fixture
def compare(environment: ProxyEnvironment, learned_environment: ProxyEnvironment, tmp_path: Path) -> CompareRequests:
    """Compare requests of the old service.

    Returns the JSON result plus the exit code as `code`. By default the proxy has a learned table of uids.
    """

    async def run_comparison(
        requests: Sequence[V3Request], proxy: str = learned_environment.proxy.url
    ) -> dict[str, Any]:
        lines = [f"/v3{request.target(KEY)}\n" for request in requests]
        (tmp_path / "calls.txt").write_text("".join(lines), encoding="utf-8")
        (tmp_path / "fast.yaml").write_text("baseline_rate: 0", encoding="utf-8")
        sides = ("--baseline", environment.sandbox.legacy_url + "/v3", "--candidate", proxy)
        options = ("--rules", "fast.yaml", "--requests", "calls.txt", "--yes", "--json", "result.json")
        found = await commands.wait(await commands.start(tmp_path, "compare", *sides, *options), LATEST)
        assert (tmp_path / "result.json").exists(), found
        return {**json.loads((tmp_path / "result.json").read_text("utf-8")), "code": found.code}

    return run_comparison
