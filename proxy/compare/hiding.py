"""How much rules hid in an earlier run, as a file, and which of them hide more now."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from proxy import errors
from proxy.compare.result import Result


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Compared calls, and how many differences each rule hid in them, by its name."""

    calls: int
    hidden: dict[str, int]

    def exceeded(self, hidden: Mapping[str, int], calls: int, margin: float) -> Iterator[str]:
        """The rules that hide more a call than then, in words. `margin` is the share by which they may."""
        for name, times in sorted(hidden.items()):
            before = self.hidden.get(name, 0)
            if times * self.calls > before * calls * (1 + margin):
                yield (
                    f"the rule {name} hides {times} differences of {calls} calls, more than the baseline: "
                    f"{before} of {self.calls}"
                )


def read(path: Path) -> Baseline:
    """The file of an earlier run. Raises ConfigError, which says how to make one."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Baseline)
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except msgspec.DecodeError as error:
        reason = f"is no baseline: {error}"
    raise errors.ConfigError(f"the baseline {path} {reason}; --save-hidden FILE writes one")


def render(result: Result) -> str:
    """The file of a run."""
    found = Baseline(
        sum(row.calls for row in result.rows), {rule.name: rule.hidden for rule in result.rules if rule.hidden}
    )
    return msgspec.json.format(msgspec.json.encode(found, order="sorted"), indent=2).decode() + "\n"
