"""How near two values must be for a rule to let them pass. Pure; a block of compare.yaml."""

from decimal import Decimal
from typing import Annotated, Any

from msgspec import Meta

from proxy.compare.normalising import moment, number
from proxy.config.settings import Settings

Number = Annotated[float, Meta(ge=0)]


class Tolerance(Settings, frozen=True):
    """How far two values may be apart: numbers by `absolute`, or by `relative` of the larger; moments by `seconds`."""

    absolute: Annotated[Number | None, Meta(description="a number from 0 up")] = None
    relative: Annotated[Number | None, Meta(description="a share of the larger number, such as 0.01")] = None
    seconds: Annotated[Number | None, Meta(description="seconds from 0 up")] = None

    def allows(self, old: Any, new: Any) -> bool:
        """Whether two values are near enough, element by element."""
        if isinstance(old, list) and isinstance(new, list):
            return len(old) == len(new) and all(self.allows(*pair) for pair in zip(old, new, strict=True))
        if isinstance(old, dict) and isinstance(new, dict):
            return old.keys() == new.keys() and all(self.allows(old[name], new[name]) for name in old)
        return (type(old) is type(new) and old == new) or self._number(old, new) or self._moment(old, new)

    def _number(self, old: Any, new: Any) -> bool:
        one, other = number(old), number(new)
        if one is None or other is None:
            return False
        apart, larger = abs(one - other), max(abs(one), abs(other))
        if self.absolute is not None and apart <= Decimal(str(self.absolute)):
            return True
        return self.relative is not None and apart <= Decimal(str(self.relative)) * larger

    def _moment(self, old: Any, new: Any) -> bool:
        if self.seconds is None:
            return False
        one, other = moment(old), moment(new)
        return one is not None and other is not None and abs((one - other).total_seconds()) <= self.seconds
