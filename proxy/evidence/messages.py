"""What a worker and the process that judges its sample exchange: one message in, one out, in MessagePack."""

import msgspec

from proxy.evidence.records import TrafficEvidence


class SampledExchange(msgspec.Struct, frozen=True):
    """Exchange as sent and as received; held in memory until it is judged. `request` is the body of a GraphQL request,
    and empty for a token request, whose body has the secret. The names of `headers` are in lower case."""

    at: str
    request: bytes
    status: int
    headers: dict[str, str]
    body: bytes


class JudgedSample(msgspec.Struct, frozen=True):
    """What a sample says, and the seconds of CPU that this took."""

    evidence: TrafficEvidence
    cpu_seconds: float


def encode(message: list[SampledExchange] | JudgedSample) -> bytes:
    """Encode a message."""
    return msgspec.msgpack.encode(message)


def decode_sample(content: bytes) -> list[SampledExchange]:
    """Decode the message to the process."""
    return msgspec.msgpack.decode(content, type=list[SampledExchange])


def decode_judged(content: bytes) -> JudgedSample:
    """Decode the message of the process."""
    return msgspec.msgpack.decode(content, type=JudgedSample)
