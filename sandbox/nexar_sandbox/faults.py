"""Faults that the sandbox injects: ten kinds with their parameters, the parsing of declarations, and the choice of the
fault that hits a request. `exchanges.py` and the services apply it.

A fault that replaces the execution (reset, 5xx, 429, 401, expired, quota) bills nothing. One that modifies a response
(latency, cut, malformed, slow-loris, reset with `when=after`) bills as the service would.
"""

import random
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

import msgspec

# The text of a Meta says what a parameter accepts: error messages are made of it.
Both: TypeAlias = Annotated[Literal["graphql", "token", "both"], msgspec.Meta(description="graphql, token or both")]
Queries: TypeAlias = Annotated[Literal["graphql"], msgspec.Meta(description="graphql")]
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


class QuotaFault(Fault, frozen=True, tag="quota"):
    """Sets the part limit to `at`, or to the current usage, until the fault is removed."""

    on: Queries = "graphql"
    at: Parts | None = None


def kind_name(kind: type[Fault]) -> str:
    return str(kind.__struct_config__.tag)


_KINDS: tuple[type[Fault], ...] = (*RandomFault.__subclasses__(), QuotaFault)
KINDS = {kind_name(kind): kind for kind in _KINDS}


def accepted_values(kind: type[Fault], parameter: str) -> str:
    """Return the description of a parameter's accepted values, from its Meta."""
    hint = get_type_hints(kind, include_extras=True)[parameter]
    metas = (meta for part in (hint, *getattr(hint, "__args__", ())) for meta in getattr(part, "__metadata__", ()))
    return next(str(meta.description) for meta in metas if meta.description)


def parse_faults(text: str) -> tuple[Fault]:
    """Parse a text, `KIND name=value name=value`. Raises ValueError, which names the parameter and the value."""
    name, *words = text.split() or [""]
    kind = KINDS.get(name)
    if kind is None:
        raise ValueError(f"fault {text!r}: no kind {name!r}; there are {', '.join(KINDS)}")
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    values: dict[str, Any] = {}
    for each in words:
        parameter, sign, value = each.partition("=")
        if not sign:
            raise ValueError(f"fault {text!r}: {each!r} is not name=value")
        if parameter in values:
            raise ValueError(f"fault {text!r}: {parameter} is given twice")
        if parameter not in types:
            raise ValueError(f"fault {text!r}: it has no {parameter!r}; it has {', '.join(types)}")
        try:
            values[parameter] = msgspec.convert(value, types[parameter], strict=False)
        except msgspec.ValidationError:
            accepted = accepted_values(kind, parameter)
            raise ValueError(f"fault {text!r}: {parameter} must be {accepted}; it is {value!r}") from None
    return (kind(**values),)


def read_faults(declared: object) -> tuple[Fault, ...]:
    """Parse a list of texts. Raises as `parse_faults` does."""
    if not isinstance(declared, list) or not all(isinstance(text, str) for text in declared):
        raise ValueError(f"faults must be a list of texts, not {msgspec.json.encode(declared).decode()}")
    return tuple(fault for text in declared for fault in parse_faults(text))


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """Faults selected for a request: `delay` in seconds, and at most one other fault."""

    delay: float = 0.0
    fault: RandomFault | None = None


NO_FAULT = InjectedFault()


class FaultInjector:
    """The active faults of one sandbox. Draws use the given random source.

    Faults are drawn in the order of declaration; a request gets the first that applies. Latency is drawn separately: it
    adds up, and combines with any other fault.
    """

    def __init__(self, declared: Collection[Fault], rng: random.Random) -> None:
        self._rng = rng
        self.replace(declared)

    def replace(self, declared: Collection[Fault]) -> None:
        """Replace all faults. Raises ValueError, and changes nothing, for a second quota."""
        quotas = [fault for fault in declared if isinstance(fault, QuotaFault)]
        if len(quotas) > 1:
            raise ValueError(f"fault quota: only one is allowed, not {len(quotas)}")
        self.declared = tuple(declared)
        self.quota = quotas[0] if quotas else None
        # Numbers of requests left, None: unlimited.
        self._left = [getattr(fault, "count", None) for fault in self.declared]
        self.active = any(isinstance(fault, RandomFault) for fault in declared)

    def clear(self) -> None:
        """Remove all faults. Revoked tokens stay revoked."""
        self.replace(())

    def remaining(self) -> list[tuple[Fault, int | None]]:
        """Each fault with its number of requests left, None: unlimited."""
        return list(zip(self.declared, self._left, strict=True))

    def draw(self, service: str) -> InjectedFault:
        """Select faults for the next request of `service`, "graphql" or "token"."""
        delay, hit = 0, None
        for number, fault in enumerate(self.declared):
            # Of other faults those up to the first that strikes are drawn: a draw uses up its count.
            if isinstance(fault, LatencyFault):
                delay += fault.ms if self._strikes(number, fault, service) else 0
            elif isinstance(fault, RandomFault) and hit is None and self._strikes(number, fault, service):
                hit = fault
        return InjectedFault(delay / 1000, hit) if delay or hit else NO_FAULT

    def _strikes(self, number: int, fault: RandomFault, service: str) -> bool:
        left = self._left[number]
        if left == 0 or fault.on not in (service, "both") or self._rng.random() >= fault.share:
            return False
        if left is not None:
            self._left[number] = left - 1
        return True
