"""What include[], show[], hide[] and slice[] mean for a field at a path (contract v3-rest.md §2.3, §2.4).

Pure questions about a view, asked by the compiler. Below a keyed object a path has one of its keys, or `*`: in a view
it stands for every key, in the compiler's question for those that the view does not name.
"""

from typing import NamedTuple

from proxy.mapping.rules import FieldRule
from proxy.model import Path, View

ANY = "*"


class Keys(NamedTuple):
    """What a view says of a keyed object's keys: those it keeps (None: all) and drops, those whose objects differ from
    the others', and the key that stands for the others."""

    picked: frozenset[str] | None
    dropped: frozenset[str]
    apart: tuple[str, ...]
    others: str


def shows(view: View, rule: FieldRule, at: Path) -> bool:
    """Whether a reply in this view holds the field at all."""
    if rule.include and at[-1] not in view.include:
        return False
    if any(_is(gone, at) for gone in view.hide):
        return False
    return not view.show or any(_is(kept[: len(at)], at[: len(kept)]) for kept in view.show)


def shows_class(view: View, at: Path) -> bool:
    """Whether the object at this path keeps its `__class__`: not where show[] picks fields of it."""
    return not view.show or any(len(kept) <= len(at) and _is(kept, at[: len(kept)]) for kept in view.show)


def keys(view: View, at: Path) -> Keys:
    """Of the keyed object at this path."""
    level = len(at)
    picked = _keys(view.show, at, level + 1)
    whole = any(_is(kept, at[: len(kept)]) for kept in view.show if len(kept) <= level)
    dropped = frozenset(gone[level] for gone in view.hide if len(gone) == level + 1 and gone[:level] == at)
    apart = _keys(view.show | view.hide | view.cut | view.emptied, at, level + 2)
    if ANY in picked:
        apart |= picked
    apart -= {ANY}
    alike = sorted(picked - apart - {ANY})
    if ANY in dropped:
        return Keys(frozenset(), frozenset(), (), ANY)
    everything = not view.show or whole or ANY in picked
    return Keys(None if everything else picked, dropped, tuple(sorted(apart)), alike[0] if alike else ANY)


def cut(view: View, at: Path) -> Path | None:
    """The path under which a list field is cut, None where it is not. How far it is cut is the request's business."""
    return next((path for path in sorted(view.cut, reverse=True) if _is(path, at)), None)


def emptied(view: View, at: Path) -> bool:
    """Whether a cut leaves nothing of the field, so that it need not be asked for."""
    return any(_is(path, at) for path in view.emptied)


def _keys(paths: frozenset[Path], at: Path, least: int) -> frozenset[str]:
    """The keys that paths of at least so many steps have below this one."""
    return frozenset(path[len(at)] for path in paths if len(path) >= least and path[: len(at)] == at)


def _is(path: Path, at: Path) -> bool:
    """Whether a view's path is this one."""
    return len(path) == len(at) and all(step in (ANY, here) for step, here in zip(path, at, strict=True))
