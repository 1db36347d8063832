"""Messages between a worker and its judge process, over that process's standard input and output.

Each message is its length in four bytes and MessagePack. The setup comes first and has no reply; every later message to
the process has one.
"""

from typing import Literal

import msgspec

from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse

HEAD = 4  # bytes of the length prefix


class JudgeSetup(msgspec.Struct, frozen=True, tag=True):
    """First message: the rules file (None: the shipped one), the catalog site, the previous tally (JSON, empty for
    none), and the uids of a site's own table."""

    rules: str | None
    site: str
    tally_text: str
    uids: tuple[str, ...] = ()


class JudgePair(msgspec.Struct, frozen=True, tag=True):
    """Pair of responses to judge and to count. `may_repeat`: the request can be repeated at the old service.

    `secrets` are the keys that may occur in the responses; they are redacted from the tally.
    """

    request: V3Request
    at: float
    baseline: SideResponse
    candidate: SideResponse
    baseline_again: SideResponse | None = None
    may_repeat: bool = False
    secrets: tuple[str, ...] = ()


class PairVerdict(msgspec.Struct, frozen=True, tag=True):
    """Outcome of a pair. "repeat" requests the same pair once more, with a second response of the old service.

    `side` is the origin of a failure: baseline, candidate, or internal.
    """

    outcome: Literal["equivalent", "different", "failure", "repeat"]
    side: str = ""


class TallyRequest(msgspec.Struct, frozen=True, tag=True):
    """Request for the tally."""


class TallyReport(msgspec.Struct, frozen=True, tag=True):
    """Tally as JSON."""

    text: str


ToJudge = JudgeSetup | JudgePair | TallyRequest
ToWorker = PairVerdict | TallyReport


_encoder = msgspec.msgpack.Encoder()
_judge_decoder: msgspec.msgpack.Decoder[ToJudge] = msgspec.msgpack.Decoder(ToJudge)
_worker_decoder: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)


def encode(message: ToJudge | ToWorker) -> bytes:
    """Encode a message with its length prefix."""
    content = _encoder.encode(message)
    return len(content).to_bytes(HEAD, "big") + content


def decode_for_judge(content: bytes) -> ToJudge:
    """Decode a message to the process, without its prefix."""
    return _judge_decoder.decode(content)


def decode_for_worker(content: bytes) -> ToWorker:
    """Decode a message from the process, without its prefix."""
    return _worker_decoder.decode(content)
