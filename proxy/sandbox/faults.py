"""The faults that the sandbox can be told to have: what each is, which service it strikes, and its figures.

Read from text and JSON by injection/declarations.py, drawn by injection/injector.py; nothing acts here. A fault that
strikes instead of the work (reset, 5xx, 429, 401, expired, quota, missing-field) bills nothing. One that spoils an
answer already made (latency, cut, malformed, slow-loris, reset with `when=after`) bills as the service would.
"""

from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

import msgspec

from proxy.sandbox import declaration_syntax

# The text of a Meta says what a figure accepts: error messages and docs/reference/sandbox.md are made of it.
Both: TypeAlias = Annotated[Literal["graphql", "token", "both"], msgspec.Meta(description="graphql, token or both")]
Queries: TypeAlias = Annotated[Literal["graphql"], msgspec.Meta(description="graphql")]
TokenRequests: TypeAlias = Annotated[Literal["token"], msgspec.Meta(description="token")]
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1, description="a share of requests, from 0 to 1")]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, description="a number of requests, at least 1")]
Seconds: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=86_400, description="seconds, 0 to 86400")]
Wait: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=600_000, description="milliseconds, 1 to 600000")]
Bytes: TypeAlias = Annotated[int, msgspec.Meta(ge=0, description="bytes of the body that are sent, 0 or more")]
Parts: TypeAlias = Annotated[int, msgspec.Meta(ge=0, description="parts in a month, 0 or more")]


class Fault(msgspec.Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    """A declaration. `on` is the service that it strikes: `graphql`, `token` or `both`."""

    on: Both = "graphql"


class RandomFault(Fault, frozen=True):
    """Strikes a `share` of the requests; with a `count`, so many of them, and is over then."""

    share: Share = 1.0
    count: Count | None = None


class LatencyFault(RandomFault, frozen=True, tag="latency"):
    """The answer is made at once and sent `ms` milliseconds later. The one fault that meets others."""

    ms: Wait = 200


class ResetFault(RandomFault, frozen=True, tag="reset"):
    """The connection is reset (RST) without a byte of an answer, `before` or `after` the work is done and billed."""

    when: Annotated[Literal["before", "after"], msgspec.Meta(description="before or after")] = "before"


class ServerErrorFault(RandomFault, frozen=True, tag="5xx"):
    """A gateway's page in HTML, or the service's own words in JSON."""

    status: Annotated[Literal[500, 502, 503, 504], msgspec.Meta(description="500, 502, 503 or 504")] = 503
    body: Annotated[Literal["html", "json"], msgspec.Meta(description="html or json")] = "html"
    retry_after: Seconds | None = None


class RateLimitFault(RandomFault, frozen=True, tag="429"):
    """The service asks for patience, with Retry-After."""

    retry_after: Seconds = 1


class InvalidTokenFault(RandomFault, frozen=True, tag="401"):
    """AuthInvalidToken, though the token is good and stays so."""

    on: Queries = "graphql"


class ExpiredTokenFault(RandomFault, frozen=True, tag="expired"):
    """AuthExpiredToken for the token that is shown, now and ever after; one that is issued later is good."""

    on: Queries = "graphql"


class TruncationFault(RandomFault, frozen=True, tag="cut"):
    """Content-Length promises the whole body, the connection ends `after` so many bytes of it."""

    after: Bytes = 20


class MalformedBodyFault(RandomFault, frozen=True, tag="malformed"):
    """200 with the first `half` of the JSON as if it were all of it, with nothing, or with a page in HTML."""

    body: Annotated[Literal["half", "empty", "html"], msgspec.Meta(description="half, empty or html")] = "half"


class SlowBodyFault(RandomFault, frozen=True, tag="slow-loris"):
    """The body comes byte by byte, `ms` milliseconds apart."""

    ms: Wait = 100


class MissingExpiryFault(RandomFault, frozen=True, tag="no-expiry"):
    """A token answer that does not say when the token ends: no `expires_in`, no `exp` in the token, or neither."""

    on: TokenRequests = "token"
    lacks: Annotated[Literal["expires_in", "exp", "both"], msgspec.Meta(description="expires_in, exp or both")] = "both"


class ClockSkewFault(RandomFault, frozen=True, tag="wrong-clock"):
    """The identity service's clock is `seconds` ahead (behind, where negative): in the token and the Date header."""

    on: TokenRequests = "token"
    seconds: Annotated[
        int, msgspec.Meta(ge=-31_536_000, le=31_536_000, description="seconds, -31536000 to 31536000")
    ] = 3600


class QuotaFault(Fault, frozen=True, tag="quota"):
    """The part limit is `at` this number, or, without it, at what has been used; until the fault is lifted."""

    on: Queries = "graphql"
    at: Parts | None = None


class MissingFieldFault(Fault, frozen=True, kw_only=True, tag="missing-field"):
    """The schema has no such field; until the fault is lifted."""

    on: Queries = "graphql"
    field: Annotated[str, msgspec.Meta(pattern=r"^\w+\.\w+$", description="a field of the schema, written Type.field")]


class MixedFaults(msgspec.Struct, frozen=True, tag="mixed", tag_field="kind", forbid_unknown_fields=True):
    """A little of everything that passes: `share` of all requests is struck. Stands for many faults."""

    on: Both = "both"
    share: Share = 0.05

    def faults(self) -> Iterator[Fault]:
        """Each with its part of the share, so that all of them together strike exactly that."""
        left = 1.0
        for fault, weight in MIX:
            own = self.share * weight
            # What is tried later sees only what came past the earlier ones.
            share, left = min(1.0, own / left) if left > 0 else 0.0, left - own
            if isinstance(fault, InvalidTokenFault | ExpiredTokenFault):
                if self.on != "token":
                    yield msgspec.structs.replace(fault, share=share)
            else:
                yield msgspec.structs.replace(fault, share=share, on=self.on)


# Weights add up to 1. Faults of the token are last and rare: each costs a token request, and these are limited.
MIX: tuple[tuple[RandomFault, float], ...] = (
    (LatencyFault(), 0.20),
    (ResetFault(), 0.12),
    (ServerErrorFault(status=503), 0.12),
    (ServerErrorFault(status=500, body="json"), 0.08),
    (RateLimitFault(), 0.08),
    (TruncationFault(), 0.12),
    (MalformedBodyFault(), 0.06),
    (MalformedBodyFault(body="html"), 0.04),
    (MalformedBodyFault(body="empty"), 0.02),
    (SlowBodyFault(), 0.12),
    (InvalidTokenFault(), 0.02),
    (ExpiredTokenFault(), 0.02),
)

Declaration: TypeAlias = type[Fault] | type[MixedFaults]
kind_name = declaration_syntax.kind_name
KINDS: dict[str, Declaration] = {
    kind_name(kind): kind
    for kind in (
        LatencyFault,
        ResetFault,
        ServerErrorFault,
        RateLimitFault,
        InvalidTokenFault,
        ExpiredTokenFault,
        TruncationFault,
        MalformedBodyFault,
        SlowBodyFault,
        MissingExpiryFault,
        ClockSkewFault,
        QuotaFault,
        MissingFieldFault,
        MixedFaults,
    )
}


_PARSER: declaration_syntax.DeclarationParser[Fault | MixedFaults] = declaration_syntax.DeclarationParser(
    "fault", tuple(KINDS.values())
)


def parse_faults(text: str) -> tuple[Fault, ...]:
    """The faults of a text: a kind, then figures as name=value. `mixed` gives several, all others one."""
    return _expand(_PARSER.parse(text))


def read_faults(given: object) -> tuple[Fault, ...]:
    """The faults of a JSON list, whose items are texts as above or objects with a `kind`."""
    return tuple(fault for one in _PARSER.read(given) for fault in _expand(one))


def fault_text(fault: Fault) -> str:
    """A fault as `parse` reads it, without the figures that have their defaults."""
    given = {
        field.name: getattr(fault, field.name)
        for field in msgspec.structs.fields(fault)
        if field.required or getattr(fault, field.name) != field.default
    }
    return " ".join((declaration_syntax.kind_name(type(fault)), *(f"{name}={value}" for name, value in given.items())))


def _expand(one: Fault | MixedFaults) -> tuple[Fault, ...]:
    return tuple(one.faults()) if isinstance(one, MixedFaults) else (one,)
