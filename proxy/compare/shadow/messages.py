"""Messages between a worker and its judge process, over that process's standard input and output.

Each message is its length in four bytes and MessagePack. The setup comes first and has no answer; then every message
to the process has one message back.
"""

from typing import Literal, NamedTuple

import msgspec

from proxy.compare.requests import V3Request
from proxy.compare.responses import SideResponse

HEAD = 4  # bytes of a message's length


class JudgeSetup(msgspec.Struct, frozen=True, tag=True):
    """What to begin with: the file of rules (None: the shipped one), the catalog site, what was gathered before (JSON,
    empty where nothing was), and the uids of a site's own table.
    """

    rules: str | None
    site: str
    gathered: str
    uids: tuple[str, ...] = ()


class JudgePair(msgspec.Struct, frozen=True, tag=True):
    """A pair of answers to judge and to add up. `may_ask_again`: the old service can be asked once more.

    `secrets` are the keys that may stand in the responses; what is kept of them holds none.
    """

    request: V3Request
    at: float
    baseline: SideResponse
    candidate: SideResponse
    baseline_again: SideResponse | None = None
    may_ask_again: bool = False
    secrets: tuple[str, ...] = ()


class PairVerdict(msgspec.Struct, frozen=True, tag=True):
    """What came of a job. "again": nothing yet; it is wanted once more, with a second response of the old service.

    `side` is that which the trouble is of: old, new, or inside.
    """

    outcome: Literal["equivalent", "different", "failure", "again"]
    side: str = ""


class TallyRequest(msgspec.Struct, frozen=True, tag=True):
    """What was gathered so far is to be told."""


class TallyReport(msgspec.Struct, frozen=True, tag=True):
    """All of it, as JSON."""

    text: str


Down = JudgeSetup | JudgePair | TallyRequest
Up = PairVerdict | TallyReport


class _Coders(NamedTuple):
    encoder: msgspec.msgpack.Encoder
    down: msgspec.msgpack.Decoder[Down]
    up: msgspec.msgpack.Decoder[Up]


_CODERS = _Coders(msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Down), msgspec.msgpack.Decoder(Up))


def encode(message: Down | Up) -> bytes:
    """With its length before it."""
    content = _CODERS.encoder.encode(message)
    return len(content).to_bytes(HEAD, "big") + content


def down(content: bytes) -> Down:
    """A message to the process, without its length."""
    return _CODERS.down.decode(content)


def up(content: bytes) -> Up:
    """A message from it."""
    return _CODERS.up.decode(content)
