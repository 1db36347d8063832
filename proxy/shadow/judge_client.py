"""Client of the judge process: starts it for the first pair, sends one pair at a time, and replaces it after a failure.

A comparison takes milliseconds of CPU. In the worker's interpreter, in any thread, it would delay responses.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from proxy import errors
from proxy.kit import child_process
from proxy.shadow import messages

SECONDS = 30.0  # for one message, including the start of the process
ANSWER_MAX = 64 * 2**20  # bytes; tallies are bounded well below
END_SECONDS = 2.0  # grace period of the process before it is killed

COMMAND = child_process.command("proxy.tools.compare.shadow.judge_process")


class JudgeClient:
    """Judge process of a worker. `order` makes the setup of each new process.

    Raises ServerError if the process has ended or exceeds the time limit.
    """

    def __init__(
        self,
        order: Callable[[], Awaitable[messages.JudgeSetup]],
        command: tuple[str, ...] = COMMAND,
        seconds: float = SECONDS,
    ) -> None:
        self._order = order
        self._command = command
        self._seconds = seconds
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self.judged = 0  # pairs so far

    async def judge(self, job: messages.JudgePair) -> messages.PairVerdict:
        reply = await self._exchange(job)
        if not isinstance(reply, messages.PairVerdict):
            raise errors.ServerError("the judging process sent an unexpected message")
        return reply

    async def tally_text(self) -> str | None:
        """Request the tally, as JSON; None where no process runs."""
        if self._process is None:
            return None
        reply = await self._exchange(messages.TallyRequest())
        return reply.text if isinstance(reply, messages.TallyReport) else None

    @property
    def pid(self) -> int | None:
        """Process id; None where no process runs."""
        return None if self._process is None else self._process.pid

    async def close(self) -> None:
        """End the process and discard its tally. A pair in progress is not judged."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await process.wait()
        except TimeoutError:
            pass
        finally:
            await _kill(process)

    async def _exchange(self, message: messages.ToJudge) -> messages.ToWorker:
        async with self._turn:
            try:
                async with asyncio.timeout(self._seconds):
                    if self._process is None:
                        self._process = await self._start()
                    reply = await _exchange(self._process, message)
            except (OSError, EOFError, ValueError) as error:  # TimeoutError is a subclass of OSError
                await self._give_up()
                raise errors.ServerError(f"the judging process has ended ({type(error).__name__})") from error
            except BaseException:  # a cancelled message may be written or read in part, so the stream is unusable
                await self._give_up()
                raise
            self.judged += isinstance(message, messages.JudgePair)
            return reply

    async def _give_up(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await _kill(process)

    async def _start(self) -> asyncio.subprocess.Process:
        order = messages.encode(await self._order())
        process = await child_process.start(self._command)  # it ends with its input
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        process.stdin.write(order)
        return process


async def _exchange(process: asyncio.subprocess.Process, message: messages.ToJudge) -> messages.ToWorker:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes
    process.stdin.write(messages.encode(message))
    await process.stdin.drain()
    size = int.from_bytes(await process.stdout.readexactly(messages.HEAD), "big")
    if size > ANSWER_MAX:
        raise ValueError("a response of no size that there is")
    return messages.decode_for_worker(await process.stdout.readexactly(size))


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
