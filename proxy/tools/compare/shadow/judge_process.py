"""Judge process: reads pairs from standard input, adds up the comparisons, and reports the tally on request.

Started by judge_client.py. It does no other I/O, runs at low priority, and ends with its input.
"""

import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from proxy.kit import clock as clocks
from proxy.redaction import Redaction
from proxy.shadow import messages
from proxy.tools.compare import loader
from proxy.tools.compare.judging.findings import Comparison
from proxy.tools.compare.judging.judge import Judge, ResponsePair
from proxy.tools.compare.judging.tally import Tally
from proxy.tools.compare.redaction import redact_comparison
from proxy.tools.compare.running import judgement

NICE = 10  # niceness: the worker's responses have priority


class JudgeProcess:
    """Message handler of the process: one message in, one out. Its tally holds none of the keys that it was given."""

    def __init__(self, order: messages.JudgeSetup, clock: clocks.Clock) -> None:
        """Raise ConfigError."""
        path = None if order.rules is None else Path(order.rules)
        self._settings = loader.load(path, os.environ)
        self._site = order.site
        self._uids = frozenset(order.uids)
        self._tally = msgspec.json.decode(order.tally_text, type=Tally) if order.tally_text else Tally()
        self._clock = clock
        self._secrets: set[str] = set()
        self._redaction = Redaction(())
        self._day: date | None = None
        self._judge = self._of_today()

    def answer(self, message: messages.ToJudge) -> messages.ToWorker:
        """Answer a message."""
        if isinstance(message, messages.JudgePair):
            return self._judged(message)
        self._tally.drop_ended(self._clock.now())
        return messages.TallyReport(self._redaction.body(msgspec.json.encode(self._tally)).decode())

    def _judged(self, job: messages.JudgePair) -> messages.PairVerdict:
        """Judge a pair. An unexpected error, which client data may provoke, makes only this pair a failure."""
        self._learn(job.secrets)
        try:
            if job.may_repeat and self._asks_again(job):
                return messages.PairVerdict("repeat")
            pair = ResponsePair(job.baseline, job.candidate)
            comparison = self._of_today().compare(job.request, job.at, pair, baseline_again=job.baseline_again)
            self._add(comparison)
        except Exception as error:
            comparison = Comparison(job.request, job.at, failure=f"internal: {type(error).__name__}")
            self._add(comparison)
        if comparison.failure is not None:
            return messages.PairVerdict("failure", comparison.failure.partition(":")[0])
        return messages.PairVerdict("equivalent" if comparison.equivalent else "different")

    def _asks_again(self, job: messages.JudgePair) -> bool:
        judge = self._of_today()
        return judge.is_in_noise_sample(job.request) or bool(
            judge.differences(job.request, job.baseline, job.candidate)
        )

    def _of_today(self) -> Judge:
        """Return the judge of the current date; rules may expire while the process runs."""
        today = datetime.fromtimestamp(self._clock.now(), UTC).date()
        if today != self._day:
            self._day = today
            built = judgement.build(self._settings, self._site, self._clock, self._hidden, uids=self._uids)
            self._judge = built.judge
        return self._judge

    def _learn(self, secrets: tuple[str, ...]) -> None:
        if not self._secrets.issuperset(secrets):
            self._secrets.update(secrets)
            self._redaction = Redaction(self._secrets)

    def _hidden(self, text: str) -> str:
        return self._redaction.text(text)

    def _add(self, comparison: Comparison) -> None:
        """Add a comparison to the tally, redacted: a client may have put its key anywhere in a request."""
        self._tally.add(redact_comparison(comparison, self._redaction))


def serve(source: BinaryIO, sink: BinaryIO, clock: clocks.Clock) -> None:
    """Answer messages until the input ends."""
    answer: Callable[[messages.ToJudge], messages.ToWorker] | None = None
    while head := source.read(messages.HEAD):
        message = messages.decode_for_judge(source.read(int.from_bytes(head, "big")))
        if isinstance(message, messages.JudgeSetup):
            answer = JudgeProcess(message, clock).answer
        elif answer is not None:
            sink.write(messages.encode(answer(message)))
            sink.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICE)
    serve(sys.stdin.buffer, sys.stdout.buffer, clocks.SystemClock())
