"""Tests of the judge process as seen by a worker: started on demand, restarted after a crash, stopped in time."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support.fault_injection import until

from proxy import errors
from proxy.shadow import judge_client, messages
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse

JOB = messages.JudgePair(V3Request("/parts/match"), 1.0, SideResponse(200, b"{}", 0.1), SideResponse(200, b"{}", 0.1))
OBEDIENT = """
import asyncio
import os
import sys
from pathlib import Path
from proxy.shadow import messages as m
count, source, sink = 0, sys.stdin.buffer, sys.stdout.buffer
while head := source.read(m.HEAD):
    message = m.decode_for_judge(source.read(int.from_bytes(head, "big")))
    if isinstance(message, m.JudgeSetup):
        tally_text = message.tally_text
        continue
    count += isinstance(message, m.JudgePair)
    done = isinstance(message, m.JudgePair)
    sink.write(m.encode(m.PairVerdict("equivalent") if done else m.TallyReport(f"{tally_text}{count}")))
    sink.flush()
"""
ENDS = "import sys; sys.stdin.buffer.read(4)"
SAYS_NONSENSE = "import sys; sys.stdout.write('nonsense' * 1000); sys.stdout.flush(); sys.stdin.buffer.read()"
SAYS_NOTHING = "import sys; sys.stdin.buffer.read()"
STAYS = OBEDIENT + "\nimport time; time.sleep(600)"


@pytest.fixture
async def process() -> Any:
    """Makes a judging process of a program."""
    made: list[Any] = []

    async def order() -> Any:
        return messages.JudgeSetup(None, "octopart", f"{len(made)}:")

    def make(program: Any, seconds: float = 60.0) -> Any:
        made.append(judge_client.JudgeClient(order, (sys.executable, "-c", program), seconds))
        return made[-1]

    yield make
    for each in made:
        await each.close()


async def test_judge_process_starts_with_the_first_job_and_stays(process: Any) -> None:
    one = process(OBEDIENT)
    assert (one.pid, await one.tally_text()) == (None, None)
    assert (await one.judge(JOB)).outcome == "equivalent"
    first = one.pid
    await one.judge(JOB)
    assert (one.pid, one.judged, await one.tally_text()) == (first, 2, "1:2")


@pytest.mark.parametrize("program", [ENDS, SAYS_NONSENSE], ids=["ends", "nonsense"])
async def test_dead_judge_process_is_an_error_and_replaced_by_the_next_job(process: Any, program: Any) -> None:
    one = process(program)
    for _ in range(2):
        with pytest.raises(errors.ServerError, match="the judging process has ended"):
            await one.judge(JOB)
        assert one.pid is None
    assert one.judged == 0


async def test_unresponsive_judge_process_is_terminated(process: Any) -> None:
    one = process(SAYS_NOTHING, 0.3)
    with pytest.raises(errors.ServerError, match=r"the judging process has ended \(TimeoutError\)"):
        await one.judge(JOB)
    assert one.pid is None


async def test_judge_process_that_ignores_termination_is_killed(process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_client, "END_SECONDS", 0.1)
    one = process(STAYS)
    await one.judge(JOB)
    await one.close()
    assert one.pid is None


async def test_bodies_of_any_size_are_accepted(process: Any) -> None:
    one = process(OBEDIENT)
    large = SideResponse(200, b"x" * 5_000_000, 0.1)
    assert (await one.judge(messages.JudgePair(JOB.request, 1.0, large, large))).outcome == "equivalent"


ASKS_AND_STAYS = """
import asyncio, sys
from proxy.shadow import judge_client, messages
from service.shadow.test_judge_client import JOB

async def order():
    return messages.JudgeSetup(None, "octopart", "")

async def main():
    process = judge_client.JudgeClient(order)
    print((await process.judge(JOB)).outcome, process.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_judge_process_ends_with_a_killed_worker() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ASKS_AND_STAYS, stdout=asyncio.subprocess.PIPE, env=environment
    )
    assert worker.stdout is not None
    outcome, pid = (await worker.stdout.readline()).split()
    worker.kill()
    await worker.wait()
    assert outcome == b"equivalent"
    await until(lambda: _gone(int(pid)))


def _gone(pid: Any) -> Any:
    """Return true if the process has ended, including a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"
