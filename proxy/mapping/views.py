"""What include[], show[], hide[] and slice[] mean for a field at a path (contract v3-rest.md §2.3, §2.4).

Pure questions about a view, asked by the compiler. `*` in a path stands for any key of a keyed object.
"""

from proxy.mapping.rules import FieldRule
from proxy.model import Path, View


def shows(view: View, rule: FieldRule, at: Path) -> bool:
    """Whether a reply in this view holds the field at all."""
    if rule.include and at[-1] not in view.include:
        return False
    if at in view.hide:  # a single key of a keyed object can be hidden as a whole only
        return False
    return not view.show or any(_equal(at[: len(kept)], kept[: len(at)]) for kept in view.show)


def shows_class(view: View, at: Path) -> bool:
    """Whether the object at this path keeps its `__class__`: not where show[] picks fields of it."""
    return not view.show or any(len(kept) <= len(at) and _equal(at[: len(kept)], kept) for kept in view.show)


def keys(view: View, at: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Of a keyed object: the keys that show[] picks (none: all of them), and those that hide[] drops as a whole."""
    below = len(at) + 1
    picked = frozenset(kept[below - 1] for kept in view.show if len(kept) >= below and kept[: below - 1] == at)
    whole = any(at[: len(kept)] == kept for kept in view.show)
    return frozenset() if whole else picked, frozenset(
        gone[-1] for gone in view.hide if len(gone) == below and gone[:-1] == at
    )


def cut(view: View, at: Path) -> str:
    """The cut of a list field, as text; nothing where the view does not cut it. How far is the request's business."""
    return f"[context.cuts[{at!r}]]" if at in view.cut else ""


def emptied(view: View, at: Path) -> bool:
    """Whether a cut leaves nothing of the field, so that it need not be asked for."""
    return at in view.emptied


def _equal(one: Path, other: Path) -> bool:
    return len(one) == len(other) and all(a == b or "*" in (a, b) for a, b in zip(one, other, strict=True))
