"""Disturbances of the legacy v3 service, which make comparisons realistic: kinds, parameters and selection.

Every draw is a digest of the seed and its subject, so draws do not depend on earlier requests. Drift is drawn per
period of the clock, flapping and errors per request; missing parts and the order of offers are constant.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, TypeVar

import msgspec

from nexar_sandbox import declaration_syntax
from nexar_sandbox.kit import clock as clocks
from nexar_sandbox.legacy_v3 import projection

# The text of a Meta says what a figure accepts: error messages and docs/reference/sandbox-data.md are made of it.
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1, description="a share, from 0 to 1")]
Percent: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=90, description="per cent, above 0 and up to 90")]
Period: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=86_400, description="seconds, 0 to 86400; 0: each request")]
Wait: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=600_000, description="milliseconds, 1 to 600000")]


class Disturbance(msgspec.Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    """Affects a `share` of its objects."""

    share: Share = 1.0


class PriceDrift(Disturbance, frozen=True, tag="price-drift"):
    """Changes the prices of a share of the offers by up to `percent`, differently in every period of `seconds`."""

    share: Share = 0.2
    percent: Percent = 5.0
    seconds: Period = 60


class StockDrift(Disturbance, frozen=True, tag="stock-drift"):
    """Changes the stock of a share of the offers by up to `percent`, differently in every period of `seconds`."""

    share: Share = 0.2
    percent: Percent = 20.0
    seconds: Period = 60


class Flapping(Disturbance, frozen=True, tag="flapping"):
    """Empties a field in a random share of its occurrences, drawn for every request."""

    share: Share = 0.5
    field: Annotated[str, msgspec.Meta(pattern=r"^\w+(\.\w+)*$", description="a field of parts, such as mpn")] = (
        "offers.packaging"
    )


class ReorderedOffers(Disturbance, frozen=True, tag="reordered-offers"):
    """Shuffles the offers of a share of the parts."""


class FewerParts(Disturbance, frozen=True, tag="fewer-parts"):
    """Removes a share of the parts."""

    share: Share = 0.1


class MoreParts(Disturbance, frozen=True, tag="more-parts"):
    """Adds a duplicate of a share of the parts, by a manufacturer that only the legacy service has."""

    share: Share = 0.1


class Slowness(Disturbance, frozen=True, tag="slowness"):
    """Delays a share of the responses by `ms` milliseconds."""

    ms: Wait = 200


class Errors(Disturbance, frozen=True, tag="errors"):
    """Fails a share of the requests, with a gateway's HTML error page or the service's JSON error."""

    share: Share = 0.1
    status: Annotated[Literal[500, 502, 503], msgspec.Meta(description="500, 502 or 503")] = 503
    body: Annotated[Literal["html", "json"], msgspec.Meta(description="html or json")] = "html"


PARSER: declaration_syntax.DeclarationParser[Disturbance] = declaration_syntax.DeclarationParser(
    "disturbance",
    (PriceDrift, StockDrift, Flapping, ReorderedOffers, FewerParts, MoreParts, Slowness, Errors),
)
parse_disturbance = PARSER.parse


D = TypeVar("D", bound=Disturbance)
_DIGEST_RANGE = float(1 << 64)


def seeded_fraction(*place: object) -> float:
    """Return a fraction in [0, 1), the same for the same arguments."""
    digest = hashlib.blake2b(":".join(map(str, place)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / _DIGEST_RANGE


@dataclass(frozen=True, slots=True)
class RequestMoment:
    """Number and time of a request, in seconds since 1970."""

    number: int
    now: float


class DisturbanceInjector:
    def __init__(self, declared: Collection[Disturbance], clock: clocks.Clock, seed: int) -> None:
        self._clock, self._seed = clock, seed
        self._number = 0
        self.replace(declared)

    def replace(self, declared: Collection[Disturbance]) -> None:
        """Replace all disturbances. Raises ValueError, and changes nothing, for an unknown field or duplicate kind."""
        for each in declared:
            if isinstance(each, Flapping) and not projection.is_known("Part", tuple(each.field.split("."))):
                raise ValueError(f"disturbance flapping: parts have no field {each.field}")
        kinds = [type(each) for each in declared if not isinstance(each, Flapping)]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise ValueError(f"disturbance {declaration_syntax.kind_name(kind)}: only one is allowed")
        self.declared = tuple(declared)

    def lift(self) -> None:
        self.replace(())

    def begin(self) -> "RequestDisturbances":
        self._number += 1
        return RequestDisturbances(self.declared, RequestMoment(self._number, self._clock.now()), self._seed)


class RequestDisturbances:
    """Disturbances of one request; unaffected values are returned unchanged."""

    def __init__(self, declared: tuple[Disturbance, ...], moment: RequestMoment, seed: int) -> None:
        self._by_kind = {type(each): each for each in declared}
        self._moment, self._seed = moment, seed
        self.flapping = tuple(each for each in declared if isinstance(each, Flapping))

    @property
    def active(self) -> bool:
        return bool(self._by_kind)

    @property
    def moves_parts(self) -> bool:
        return FewerParts in self._by_kind or MoreParts in self._by_kind

    @property
    def delay(self) -> float:
        """Delay of the response in seconds."""
        slow = self._of(Slowness)
        return slow.ms / 1000 if slow and self._strikes(slow, self._moment.number) else 0.0

    @property
    def error(self) -> Errors | None:
        error = self._of(Errors)
        return error if error and self._strikes(error, self._moment.number) else None

    def price(self, offer_id: str) -> float:
        return self._drifted(self._of(PriceDrift), offer_id)

    def stock(self, offer_id: str, pieces: int) -> int:
        """Return the offer's stock; negative codes and 0 are unchanged."""
        drift = self._drifted(self._of(StockDrift), offer_id) if pieces > 0 else 1.0
        # At least one piece of difference.
        return pieces if drift == 1.0 else max(round(pieces * drift), 0) + (round(pieces * drift) == pieces)

    def lacks(self, part_id: str) -> bool:
        fewer = self._of(FewerParts)
        return fewer is not None and self._strikes(fewer, part_id)

    def doubles(self, part_id: str) -> bool:
        more = self._of(MoreParts)
        return more is not None and self._strikes(more, part_id)

    def place(self, part_id: str, offer_id: str) -> float | None:
        """Sort key of an offer of the part; None: regular order."""
        mixed = self._of(ReorderedOffers)
        return seeded_fraction(self._seed, "place", offer_id) if mixed and self._strikes(mixed, part_id) else None

    def flaps(self, flapping: Flapping, place: object) -> bool:
        return self._strikes(flapping, self._moment.number, flapping.field, place)

    def _of(self, kind: type[D]) -> D | None:
        disturbances = self._by_kind.get(kind)
        return disturbances if isinstance(disturbances, kind) else None

    def _strikes(self, disturbance: Disturbance, *place: object) -> bool:
        return seeded_fraction(self._seed, declaration_syntax.kind_name(type(disturbance)), *place) < disturbance.share

    def _drifted(self, drift: PriceDrift | StockDrift | None, offer_id: str) -> float:
        if drift is None:
            return 1.0
        # All requests of a period see the same drift; 0 seconds make each request a period.
        period = int(self._moment.now // drift.seconds) if drift.seconds else self._moment.number
        if not self._strikes(drift, offer_id, period):
            return 1.0
        by = seeded_fraction(self._seed, "by", offer_id, period) * 2 - 1
        # At least a fifth of the range, so that the drift is visible.
        return 1 + drift.percent / 100 * (by if abs(by) >= 0.2 else 0.2)
