"""Which disturbance strikes what. Holds what is declared now; every draw is a digest of the seed and its place.

No random source is kept, so that a draw does not depend on what was asked before, but for the number of the request.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeVar

from proxy.kit import clock as clocks
from proxy.sandbox import declaration_syntax as words
from proxy.sandbox.legacy_v3 import disturbances, fields

D = TypeVar("D", bound=disturbances.Disturbance)
_WHOLE = float(1 << 64)


def fraction(*place: object) -> float:
    """From 0 to 1, below 1; the same for the same place."""
    digest = hashlib.blake2b(":".join(map(str, place)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / _WHOLE


@dataclass(frozen=True, slots=True)
class Moment:
    """One request's place in time: its number and when it came, in seconds since 1970."""

    number: int
    now: float


class Disturbances:
    """What is declared for one service, replaced at any moment."""

    def __init__(self, declared: Collection[disturbances.Disturbance], clock: clocks.Clock, seed: int) -> None:
        self._clock, self._seed = clock, seed
        self._number = 0
        self.replace(declared)

    def replace(self, declared: Collection[disturbances.Disturbance]) -> None:
        """From now on these and no others. Raises ValueError, and changes nothing, for a field that parts do not have
        and for a kind given twice."""
        for each in declared:
            if isinstance(each, disturbances.Flapping) and not fields.known("Part", tuple(each.field.split("."))):
                raise ValueError(f"disturbance flapping: parts have no field {each.field}")
        kinds = [type(each) for each in declared if not isinstance(each, disturbances.Flapping)]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise ValueError(f"disturbance {words.kind_name(kind)}: there can be one")
        self.declared = tuple(declared)

    def lift(self) -> None:
        """No disturbances from now on."""
        self.replace(())

    def begin(self) -> "Draws":
        """What strikes the request that has just come."""
        self._number += 1
        return Draws(self.declared, Moment(self._number, self._clock.now()), self._seed)


class Draws:
    """What strikes one request. Everything it does not strike comes back as it was."""

    def __init__(self, declared: tuple[disturbances.Disturbance, ...], moment: Moment, seed: int) -> None:
        self._by_kind = {type(each): each for each in declared}
        self._moment, self._seed = moment, seed
        self.flapping = tuple(each for each in declared if isinstance(each, disturbances.Flapping))

    @property
    def active(self) -> bool:
        """Whether anything is declared."""
        return bool(self._by_kind)

    @property
    def moves_parts(self) -> bool:
        """Whether parts may be missing or doubled."""
        return disturbances.FewerParts in self._by_kind or disturbances.MoreParts in self._by_kind

    @property
    def delay(self) -> float:
        """Seconds that the reply comes late."""
        slow = self._of(disturbances.Slowness)
        return slow.ms / 1000 if slow and self._strikes(slow, self._moment.number) else 0.0

    @property
    def error(self) -> disturbances.Errors | None:
        """How the request fails."""
        error = self._of(disturbances.Errors)
        return error if error and self._strikes(error, self._moment.number) else None

    def price(self, offer_id: str) -> float:
        """What the offer's prices are multiplied by."""
        return self._drifted(self._of(disturbances.PriceDrift), offer_id)

    def stock(self, offer_id: str, pieces: int) -> int:
        """The offer's stock; codes, which are negative, and nothing stay so."""
        drift = self._drifted(self._of(disturbances.StockDrift), offer_id) if pieces > 0 else 1.0
        # One piece more or less where that is all that a drift can do.
        return pieces if drift == 1.0 else max(round(pieces * drift), 0) + (round(pieces * drift) == pieces)

    def lacks(self, part_id: str) -> bool:
        """Whether the part is not known here."""
        fewer = self._of(disturbances.FewerParts)
        return fewer is not None and self._strikes(fewer, part_id)

    def doubles(self, part_id: str) -> bool:
        """Whether the part has a twin."""
        more = self._of(disturbances.MoreParts)
        return more is not None and self._strikes(more, part_id)

    def place(self, part_id: str, offer_id: str) -> float | None:
        """What the part's offers are to be ordered by; None where they stay in order."""
        mixed = self._of(disturbances.ReorderedOffers)
        return fraction(self._seed, "place", offer_id) if mixed and self._strikes(mixed, part_id) else None

    def flaps(self, flapping: disturbances.Flapping, place: object) -> bool:
        """Whether the field is empty in this place."""
        return self._strikes(flapping, self._moment.number, flapping.field, place)

    def _of(self, kind: type[D]) -> D | None:
        found = self._by_kind.get(kind)
        return found if isinstance(found, kind) else None

    def _strikes(self, one: disturbances.Disturbance, *place: object) -> bool:
        return fraction(self._seed, words.kind_name(type(one)), *place) < one.share

    def _drifted(self, drift: disturbances.PriceDrift | disturbances.StockDrift | None, offer_id: str) -> float:
        if drift is None:
            return 1.0
        period = int(self._moment.now // drift.seconds) if drift.seconds else self._moment.number
        if not self._strikes(drift, offer_id, period):
            return 1.0
        by = fraction(self._seed, "by", offer_id, period) * 2 - 1
        # Never so little that nothing of it is seen.
        return 1 + drift.percent / 100 * (by if abs(by) >= 0.2 else 0.2)
