"""Tests of defects planted in mappings: each is found only at its field by replaying a recording.

A defect does not count if the mappings with it are refused at start, or if it changes no response to a recorded
request: no comparison of responses can find it.
"""

from pathlib import Path
from typing import Any

import pytest
from support import cases, commands, log_lines
from together.tools.compare import covering_requests, generated_requests, planted_defects, remapping

import nexar_sandbox
from proxy import errors
from proxy.kit import shipped

CONFIG = """
upstream: sandbox
store: "memory:"
applications: {demo: {apikeys: ["EXAMPLE_KEY"]}}
"""
PLANTED, SEED = 20, 20260
CHOSEN = cases.of(__file__, "chosen")  # object, field, and the rule that is wrong


@pytest.fixture(scope="module")
def mappings() -> Any:
    return planted_defects.MappingFolder(shipped.path("mappings"))


@pytest.fixture
async def recording(tmp_path: Path) -> Any:
    """Few requests that show everything the old service has something for, recorded with both sides' answers."""
    with log_lines.collected("error"):
        chosen = nexar_sandbox.SandboxSettings(legacy=nexar_sandbox.LegacySettings(requests_per_second=None))
        async with nexar_sandbox.serve(chosen) as sandbox:
            requests = await covering_requests.covering_requests(sandbox.legacy_url)
        (tmp_path / "own.yaml").write_text(CONFIG)
        (tmp_path / "calls.txt").write_text(
            "".join(f"/v3{request.target(generated_requests.KEY)}\n" for request in requests)
        )
        arguments = (
            "--config",
            "own.yaml",
            "--baseline",
            "sandbox",
            "--requests",
            "calls.txt",
            "--output",
            "rec.zst",
            "--yes",
        )
        found = await commands.wait(await commands.start(tmp_path, "record", *arguments))
        assert found.code == 0, found
        opened = remapping.RemappableRecording(tmp_path / "rec.zst", tmp_path / "own.yaml")
        yield opened
        opened.close()


class Tried:
    """Result of mapping with a defect, compared with the unchanged mappings."""

    def __init__(self, recording: Any, mappings: Any, right: Any, folder: Any) -> None:
        self._recording, self._mappings, self._right, self._folder = recording, mappings, right, folder

    async def shows(self, defect: Any) -> Any:
        """Return true if a response changes with the defect, which must then be found; false if refused at start."""
        self._mappings.write(defect, self._folder)
        try:
            found = await self._recording.mapped(self._folder)
        except (errors.MappingError, RecursionError):
            return False
        if found.answers == self._right.answers:
            return False
        more = {sort: times for sort, times in found.counted.items() if times > self._right.counted.get(sort, 0)}
        if found.result.failures != self._right.result.failures:
            return True  # an error of the candidate is a failure of the run, which names no field
        assert more, f"not found: {defect}"
        elsewhere = [sort for sort in more if not planted_defects.is_at_field(sort[1], sort[2], defect, self._mappings)]
        assert not elsewhere, (str(defect), elsewhere)
        assert found.result.verdict != "ready", defect
        return True


@pytest.fixture
async def tried(recording: Any, mappings: Any, tmp_path: Path) -> Any:
    right = await recording.mapped(shipped.path("mappings"))
    assert right.result.failures == ()
    return Tried(recording, mappings, right, tmp_path / "planted")


async def test_defects_are_found_at_their_fields(tried: Any, mappings: Any) -> None:
    """All selected defects are visible; of the generated ones a seeded sample is used."""
    for name, field, wrong in CHOSEN:
        file = next(
            file for file in shipped.path("mappings").glob("*.yaml") if f"\n{name}:\n" in file.read_text("utf-8")
        )
        assert await tried.shows(planted_defects.Defect("chosen", file.name, name, field, wrong)), (name, field, wrong)
    planted, kinds = 0, set()
    for defect in mappings.defects(SEED):
        if await tried.shows(defect):
            planted += 1
            kinds.add(defect.kind)
        if planted == PLANTED:
            break
    assert planted == PLANTED
    assert {"path", "none", "transform", "order", "target", "class"} <= kinds
