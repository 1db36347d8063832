"""What makes comparisons with the old v3 service hard, declared: each kind and its figures. Nothing acts here.

Everything is drawn from the sandbox's seed. What drifts is drawn anew in every period of the clock, what flaps and
fails at every request; which parts are there and how offers are ordered stays the same.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, TypeVar

import msgspec

from proxy.kit import clock as clocks
from proxy.sandbox import declaration_syntax
from proxy.sandbox import declaration_syntax as words
from proxy.sandbox.legacy_v3 import fields

# The text of a Meta says what a figure accepts: error messages and docs/reference/sandbox.md are made of it.
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1, description="a share, from 0 to 1")]
Percent: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=90, description="per cent, above 0 and up to 90")]
Period: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=86_400, description="seconds, 0 to 86400; 0: each request")]
Wait: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=600_000, description="milliseconds, 1 to 600000")]


class Disturbance(msgspec.Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    """Strikes a `share` of what it is about."""

    share: Share = 1.0


class PriceDrift(Disturbance, frozen=True, tag="price-drift"):
    """In every period of `seconds` a share of the offers has prices up to `percent` higher or lower."""

    share: Share = 0.2
    percent: Percent = 5.0
    seconds: Period = 60


class StockDrift(Disturbance, frozen=True, tag="stock-drift"):
    """In every period of `seconds` a share of the offers has up to `percent` fewer or more pieces in stock."""

    share: Share = 0.2
    percent: Percent = 20.0
    seconds: Period = 60


class Flapping(Disturbance, frozen=True, tag="flapping"):
    """A field of parts is empty in a share of the places where it is shown, others at every request."""

    share: Share = 0.5
    field: Annotated[str, msgspec.Meta(pattern=r"^\w+(\.\w+)*$", description="a field of parts, such as mpn")] = (
        "offers.packaging"
    )


class ReorderedOffers(Disturbance, frozen=True, tag="reordered-offers"):
    """A share of the parts lists its offers in no order."""


class FewerParts(Disturbance, frozen=True, tag="fewer-parts"):
    """A share of the parts is not known here."""

    share: Share = 0.1


class MoreParts(Disturbance, frozen=True, tag="more-parts"):
    """A share of the parts has a twin of the same number, of a maker that only the old service knows."""

    share: Share = 0.1


class Slowness(Disturbance, frozen=True, tag="slowness"):
    """A share of the replies is sent `ms` milliseconds late."""

    ms: Wait = 200


class Errors(Disturbance, frozen=True, tag="errors"):
    """A share of the requests fails: with a gateway's page in HTML, or in the service's own words in JSON."""

    share: Share = 0.1
    status: Annotated[Literal[500, 502, 503], msgspec.Meta(description="500, 502 or 503")] = 503
    body: Annotated[Literal["html", "json"], msgspec.Meta(description="html or json")] = "html"


PARSER: declaration_syntax.DeclarationParser[Disturbance] = declaration_syntax.DeclarationParser(
    "disturbance",
    (PriceDrift, StockDrift, Flapping, ReorderedOffers, FewerParts, MoreParts, Slowness, Errors),
)


D = TypeVar("D", bound=Disturbance)
_DIGEST_RANGE = float(1 << 64)


def seeded_fraction(*place: object) -> float:
    """From 0 to 1, below 1; the same for the same place."""
    digest = hashlib.blake2b(":".join(map(str, place)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / _DIGEST_RANGE


@dataclass(frozen=True, slots=True)
class RequestMoment:
    """One request's place in time: its number and when it came, in seconds since 1970."""

    number: int
    now: float


class DisturbanceInjector:
    """What is declared for one service, replaced at any moment."""

    def __init__(self, declared: Collection[Disturbance], clock: clocks.Clock, seed: int) -> None:
        self._clock, self._seed = clock, seed
        self._number = 0
        self.replace(declared)

    def replace(self, declared: Collection[Disturbance]) -> None:
        """From now on these and no others. Raises ValueError, and changes nothing, for a field that parts do not have
        and for a kind given twice."""
        for each in declared:
            if isinstance(each, Flapping) and not fields.known("Part", tuple(each.field.split("."))):
                raise ValueError(f"disturbance flapping: parts have no field {each.field}")
        kinds = [type(each) for each in declared if not isinstance(each, Flapping)]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise ValueError(f"disturbance {words.kind_name(kind)}: there can be one")
        self.declared = tuple(declared)

    def lift(self) -> None:
        """No disturbances from now on."""
        self.replace(())

    def begin(self) -> "RequestDisturbances":
        """What strikes the request that has just come."""
        self._number += 1
        return RequestDisturbances(self.declared, RequestMoment(self._number, self._clock.now()), self._seed)


class RequestDisturbances:
    """What strikes one request. Everything it does not strike comes back as it was."""

    def __init__(self, declared: tuple[Disturbance, ...], moment: RequestMoment, seed: int) -> None:
        self._by_kind = {type(each): each for each in declared}
        self._moment, self._seed = moment, seed
        self.flapping = tuple(each for each in declared if isinstance(each, Flapping))

    @property
    def active(self) -> bool:
        """Whether anything is declared."""
        return bool(self._by_kind)

    @property
    def moves_parts(self) -> bool:
        """Whether parts may be missing or doubled."""
        return FewerParts in self._by_kind or MoreParts in self._by_kind

    @property
    def delay(self) -> float:
        """Seconds that the reply comes late."""
        slow = self._of(Slowness)
        return slow.ms / 1000 if slow and self._strikes(slow, self._moment.number) else 0.0

    @property
    def error(self) -> Errors | None:
        """How the request fails."""
        error = self._of(Errors)
        return error if error and self._strikes(error, self._moment.number) else None

    def price(self, offer_id: str) -> float:
        """What the offer's prices are multiplied by."""
        return self._drifted(self._of(PriceDrift), offer_id)

    def stock(self, offer_id: str, pieces: int) -> int:
        """The offer's stock; codes, which are negative, and nothing stay so."""
        drift = self._drifted(self._of(StockDrift), offer_id) if pieces > 0 else 1.0
        # One piece more or less where that is all that a drift can do.
        return pieces if drift == 1.0 else max(round(pieces * drift), 0) + (round(pieces * drift) == pieces)

    def lacks(self, part_id: str) -> bool:
        """Whether the part is not known here."""
        fewer = self._of(FewerParts)
        return fewer is not None and self._strikes(fewer, part_id)

    def doubles(self, part_id: str) -> bool:
        """Whether the part has a twin."""
        more = self._of(MoreParts)
        return more is not None and self._strikes(more, part_id)

    def place(self, part_id: str, offer_id: str) -> float | None:
        """What the part's offers are to be ordered by; None where they stay in order."""
        mixed = self._of(ReorderedOffers)
        return seeded_fraction(self._seed, "place", offer_id) if mixed and self._strikes(mixed, part_id) else None

    def flaps(self, flapping: Flapping, place: object) -> bool:
        """Whether the field is empty in this place."""
        return self._strikes(flapping, self._moment.number, flapping.field, place)

    def _of(self, kind: type[D]) -> D | None:
        found = self._by_kind.get(kind)
        return found if isinstance(found, kind) else None

    def _strikes(self, one: Disturbance, *place: object) -> bool:
        return seeded_fraction(self._seed, words.kind_name(type(one)), *place) < one.share

    def _drifted(self, drift: PriceDrift | StockDrift | None, offer_id: str) -> float:
        if drift is None:
            return 1.0
        period = int(self._moment.now // drift.seconds) if drift.seconds else self._moment.number
        if not self._strikes(drift, offer_id, period):
            return 1.0
        by = seeded_fraction(self._seed, "by", offer_id, period) * 2 - 1
        # Never so little that nothing of it is seen.
        return 1 + drift.percent / 100 * (by if abs(by) >= 0.2 else 0.2)
