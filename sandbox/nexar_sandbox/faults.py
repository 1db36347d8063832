"""Kinds of faults that the sandbox can inject: parameters, affected service, and parsing of declarations.

`injection/` injects them. A fault that
replaces the execution (reset, 5xx, 429, 401, expired, quota, missing-field) bills nothing. One that modifies a
response (latency, cut, malformed, slow-loris, reset with `when=after`) bills as the service would.
"""

from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

import msgspec

from nexar_sandbox import declaration_syntax

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
    """Base of all faults. `on` is the affected service: `graphql`, `token` or `both`."""

    on: Both = "graphql"


class RandomFault(Fault, frozen=True):
    """A fault of a random `share` of the requests, at most `count` of them."""

    share: Share = 1.0
    count: Count | None = None


class LatencyFault(RandomFault, frozen=True, tag="latency"):
    """Delays the response by `ms` milliseconds. The only fault that can be combined with others."""

    ms: Wait = 200


class ResetFault(RandomFault, frozen=True, tag="reset"):
    """Resets the connection (RST) without a response, `before` or `after` the request is executed and billed."""

    when: Annotated[Literal["before", "after"], msgspec.Meta(description="before or after")] = "before"


class ServerErrorFault(RandomFault, frozen=True, tag="5xx"):
    """Responds with a gateway's HTML error page, or with the service's JSON error."""

    status: Annotated[Literal[500, 502, 503, 504], msgspec.Meta(description="500, 502, 503 or 504")] = 503
    body: Annotated[Literal["html", "json"], msgspec.Meta(description="html or json")] = "html"
    retry_after: Seconds | None = None


class RateLimitFault(RandomFault, frozen=True, tag="429"):
    """Responds with 429 and Retry-After."""

    retry_after: Seconds = 1


class InvalidTokenFault(RandomFault, frozen=True, tag="401"):
    """Responds with AuthInvalidToken although the token is valid; it stays valid."""

    on: Queries = "graphql"


class ExpiredTokenFault(RandomFault, frozen=True, tag="expired"):
    """Revokes the token: AuthExpiredToken now and later. Tokens issued later are valid."""

    on: Queries = "graphql"


class TruncationFault(RandomFault, frozen=True, tag="cut"):
    """Sends the full Content-Length but closes the connection `after` so many bytes of the body."""

    after: Bytes = 20


class MalformedBodyFault(RandomFault, frozen=True, tag="malformed"):
    """Responds with 200 and the first `half` of the JSON, an empty body, or an HTML page."""

    body: Annotated[Literal["half", "empty", "html"], msgspec.Meta(description="half, empty or html")] = "half"


class SlowBodyFault(RandomFault, frozen=True, tag="slow-loris"):
    """Sends the body byte by byte, `ms` milliseconds apart."""

    ms: Wait = 100


class MissingExpiryFault(RandomFault, frozen=True, tag="no-expiry"):
    """Omits the token's expiry: no `expires_in` in the response, no `exp` in the token, or neither."""

    on: TokenRequests = "token"
    lacks: Annotated[Literal["expires_in", "exp", "both"], msgspec.Meta(description="expires_in, exp or both")] = "both"


class ClockSkewFault(RandomFault, frozen=True, tag="wrong-clock"):
    """Sets the identity service's clock `seconds` ahead (negative: behind), in the token and the Date header."""

    on: TokenRequests = "token"
    seconds: Annotated[
        int, msgspec.Meta(ge=-31_536_000, le=31_536_000, description="seconds, -31536000 to 31536000")
    ] = 3600


class QuotaFault(Fault, frozen=True, tag="quota"):
    """Sets the part limit to `at`, or to the current usage, until the fault is removed."""

    on: Queries = "graphql"
    at: Parts | None = None


class MissingFieldFault(Fault, frozen=True, kw_only=True, tag="missing-field"):
    """Removes a field from the schema until the fault is removed."""

    on: Queries = "graphql"
    field: Annotated[str, msgspec.Meta(pattern=r"^\w+\.\w+$", description="a field of the schema, written Type.field")]


class MixedFaults(msgspec.Struct, frozen=True, tag="mixed", tag_field="kind", forbid_unknown_fields=True):
    """A mix of all transient faults: affects `share` of all requests. Expands to several faults."""

    on: Both = "both"
    share: Share = 0.05

    def faults(self) -> Iterator[Fault]:
        """Yield the single faults, whose shares add up to `share`."""
        left = 1.0
        for fault, weight in MIX:
            own = self.share * weight
            # Later faults are drawn only if no earlier one was, so their shares are scaled up.
            share, left = min(1.0, own / left) if left > 0 else 0.0, left - own
            if isinstance(fault, InvalidTokenFault | ExpiredTokenFault):
                if self.on != "token":
                    yield msgspec.structs.replace(fault, share=share)
            else:
                yield msgspec.structs.replace(fault, share=share, on=self.on)


# Weights add up to 1. Token faults are rare: each causes a token request, and these are rate limited.
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
_DECLARATIONS: tuple[Declaration, ...] = (*RandomFault.__subclasses__(), QuotaFault, MissingFieldFault, MixedFaults)
KINDS = {kind_name(kind): kind for kind in _DECLARATIONS}


_PARSER: declaration_syntax.DeclarationParser[Fault | MixedFaults] = declaration_syntax.DeclarationParser(
    "fault", _DECLARATIONS
)


def parse_faults(text: str) -> tuple[Fault, ...]:
    """Parse a text: a kind, then parameters as name=value. `mixed` expands to several faults."""
    return _expand(_PARSER.parse(text))


def read_faults(declared: object) -> tuple[Fault, ...]:
    """Parse a JSON list of texts or of objects with a `kind`."""
    return tuple(fault for declaration in _PARSER.read(declared) for fault in _expand(declaration))


def fault_text(fault: Fault) -> str:
    """Return a fault as text, without parameters at their defaults."""
    parameters = {
        field.name: getattr(fault, field.name)
        for field in msgspec.structs.fields(fault)
        if field.required or getattr(fault, field.name) != field.default
    }
    return " ".join(
        (declaration_syntax.kind_name(type(fault)), *(f"{name}={value}" for name, value in parameters.items()))
    )


def _expand(fault: Fault | MixedFaults) -> tuple[Fault, ...]:
    return tuple(fault.faults()) if isinstance(fault, MixedFaults) else (fault,)
