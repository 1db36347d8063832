"""Tests of defects planted in a mapping: each is found at its field by replaying a recording."""

import json
from pathlib import Path
from typing import Any

import pytest
from together.tools.compare import generated_requests

import nexar_sandbox

CONFIG = """
upstream: sandbox
store: "memory:"
applications: {demo: {apikeys: ["EXAMPLE_KEY"]}}
"""
REQUESTS = 60
DEFECTS = {  # the file, what is right, what is wrong, and what is in the path of each difference
    "a wrong field": (
        "mappings/offer.yaml",
        "on_order_quantity: onOrderQuantity",
        "on_order_quantity: moq",
        "on_order_",
    ),
    "a dropped price break": (
        "proxy/mapping/transforms.py",
        "for price in prices:",
        "for price in prices[1:]:",
        ".prices.",
    ),
    "a swapped brand": (
        "mappings/part.yaml",
        "brand: {from: manufacturer, is: Brand,",
        "brand: {from: manufacturer, is: Manufacturer,",
        "brand.",
    ),
}


@pytest.fixture
async def recording_file(run_command: Any, tmp_path: Path) -> None:
    """A recording of generated requests, in the folder of the test."""
    chosen = nexar_sandbox.SandboxSettings(legacy=nexar_sandbox.LegacySettings(requests_per_second=None))
    async with nexar_sandbox.serve(chosen) as sandbox:
        stock = await generated_requests.CatalogContents.of(sandbox.legacy_url)
    made = [
        request
        for request in generated_requests.RequestGenerator(stock, seed=1, whole=True).requests(2 * REQUESTS)
        if _asks_no_uids(request)
    ]
    assert len(made) > REQUESTS
    (tmp_path / "own.yaml").write_text(CONFIG)
    (tmp_path / "calls.txt").write_text("".join(f"/v3{request.target(generated_requests.KEY)}\n" for request in made))
    found = await run_command(
        *("record", "--config", "own.yaml", "--baseline", "sandbox", "--requests", "calls.txt", "--output", "rec.zst"),
        "--yes",
    )
    assert found.code == 0, found


def _asks_no_uids(request: Any) -> Any:
    """Return true if a request is for parts only. The sides do not share unrecorded uids of companies and
    categories, so a request by one of them counts as a difference."""
    return request.path.startswith("/parts") and not any("category_uids]" in name for name, _ in request.query)


@pytest.mark.usefixtures("recording_file")
async def test_every_defect_is_found_at_exactly_its_field(run_command: Any, tmp_path: Path, program_copy: Any) -> None:
    folder, change = program_copy

    async def paths() -> Any:
        command = ("compare", "--replay", "rec.zst", "--config", "own.yaml", "--json", "result.json")
        found = await run_command(*command, PYTHONPATH=str(folder))
        result = json.loads((tmp_path / "result.json").read_text("utf-8"))
        assert (result["failures"], result["cost"]["spent"]) == ([], 0), found
        return found.code, {group["path"] for group in result["groups"] if group["counts"]}

    assert await paths() == (0, set())
    for name, (file, right, wrong, shown) in DEFECTS.items():
        change(file, right, wrong)
        code, found = await paths()
        assert code == 1, name
        assert found, name
        assert all(shown in path for path in found), (name, found)
        change(file, wrong, right)
