"""Derivation of v3 uids from recorded responses, as lines of a table for the setting `uids`. Pure.

An object of the baseline corresponds to one of the candidate where both are at the same place in the responses to one
request: in the part of the same number and manufacturer, the offer of the same seller and SKU. The candidate's object
yields the numeric id. Where only the baseline was recorded, an object is identified by its own id, else by its name.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from proxy.mapping.uids import KINDS, KnownUid, Uids, source_uids
from proxy.tools.compare.judging import identity, matching, unknown_uids

NOBODY = str(2**40 - 1)  # an id that no object has

_UID = re.compile(r"[0-9a-f]{16}")


class SeenObject(NamedTuple):
    """Object of the baseline, with its Nexar id where known. `matched`: the candidate has it, too."""

    kind: str
    uid: str
    name: str
    id: str | None
    matched: bool


class LearnedUids(NamedTuple):
    """Result: new `lines` by kind, and `conflicts`, the descriptions of ambiguous uids and objects."""

    lines: dict[str, list[KnownUid]]
    known: int
    conflicts: list[str]
    unmatched: int

    @property
    def learnt(self) -> int:
        """Number of new uids."""
        return sum(map(len, self.lines.values()))


class UidLearner:
    """Learner of uids from responses. `known` are the recorded uids by kind."""

    def __init__(self, known: Mapping[str, Uids]) -> None:
        self._known, self._sources = known, source_uids(known)
        self._seen: dict[tuple[str, str, str], set[tuple[str, str | None, bool]]] = defaultdict(set)

    def take(self, baseline: Any, candidate: Any = None) -> None:
        """Take the bodies of two responses to one request, or of the baseline's alone."""
        for seen in (
            _alone(baseline) if candidate is None else (*_alone(baseline), *_pairs(baseline, candidate, self._known))
        ):
            # Sources share uids, so they are distinguished by name.
            key = (seen.kind, seen.uid, seen.name if seen.kind == "Source" else "")
            self._seen[key].add((seen.name, seen.id, seen.matched))

    def learnt(self, *, both: bool) -> LearnedUids:
        """Return the result. With `both`, the candidate was recorded, and objects that it lacks are left out."""
        lines: dict[str, list[KnownUid]] = {}
        conflicts, known, unmatched = list(self._conflicts()), 0, 0
        doubtful = {key for key, _ in conflicts}
        for key, seen in sorted(self._seen.items()):
            kind, uid, _ = key
            line = _line(uid, seen)
            if key in doubtful:
                continue
            if both and not any(matched for *_, matched in seen):
                unmatched += 1
            elif self._sent(kind, line) == uid:
                known += 1
            else:
                lines.setdefault(kind, []).append(line)
        return LearnedUids(lines, known, [words for _, words in conflicts], unmatched)

    def _sent(self, kind: str, line: KnownUid) -> str:
        """Return the uid that the service would send for the object without this line; empty for a digest."""
        if kind == "Source":
            return self._sources.get(line.name.casefold(), "")
        return self._known[kind].uid(line.id or NOBODY, line.name)

    def _conflicts(self) -> Iterator[tuple[tuple[str, str, str], str]]:
        """Yield uids of several objects, and objects with several uids."""
        holders: dict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
        for key, seen in sorted(self._seen.items()):
            ids = sorted({id_ for _, id_, _ in seen if id_})
            if len(ids) > 1:
                yield key, f"{key[0]} uid {key[1]} is of the ids {', '.join(ids)}"
            line = _line(key[1], seen)
            holders[key[0], line.id or line.name.casefold()].append(key)
        for (kind, holder), keys in holders.items():
            for key in keys if len(keys) > 1 else ():
                yield key, f"{kind} {holder} has the uids {', '.join(uid for _, uid, _ in keys)}"


def _line(uid: str, seen: Iterable[tuple[str, str | None, bool]]) -> KnownUid:
    names = sorted({name for name, *_ in seen})
    ids = sorted(id_ for _, id_, _ in seen if id_)
    return KnownUid(uid, names[0], ids[0] if ids else None, tuple(names[1:]), source="learnt")


def _alone(value: Any, name: str = "") -> Iterator[SeenObject]:
    """Yield all objects of one side."""
    if type(value) is list:
        for each in value:
            yield from _alone(each, name)
    elif type(value) is dict:
        yield from _objects(value, name, None, {})
        for key, below in value.items():
            yield from _alone(below, key)


def _pairs(
    baseline: Any, candidate: Any, known: Mapping[str, Uids], name: str = "", within: str = ""
) -> Iterator[SeenObject]:
    """Yield the baseline's objects that the candidate has, too."""
    if type(baseline) is list and type(candidate) is list:
        matched = matching.match(baseline, candidate, identity.for_list(name, within, (*baseline[:1], *candidate[:1])))
        for was, now in (*matched.same, *matched.changed):
            yield from _pairs(baseline[was], candidate[now], known, name, within)
    elif type(baseline) is dict and type(candidate) is dict:
        yield from _objects(baseline, name, candidate, known)
        for key in baseline.keys() & candidate.keys():
            yield from _pairs(baseline[key], candidate[key], known, key, name)


def _objects(
    baseline: Mapping[str, Any], name: str, candidate: Mapping[str, Any] | None, known: Mapping[str, Uids]
) -> Iterator[SeenObject]:
    """Yield the object itself, and its ancestor categories, whose names it holds."""
    kind = baseline.get("__class__") or unknown_uids.OBJECTS.get(name)
    if kind not in KINDS:
        return
    matched = candidate is not None and _agree(baseline, candidate)
    for uid, called, other in (
        (baseline.get("uid"), baseline.get("name"), (candidate or {}).get("uid")),
        *_above(baseline, candidate),
    ):
        if type(uid) is str and _UID.fullmatch(uid) and type(called) is str and called.strip():
            number = _number(baseline.get("id")) if kind == "Seller" else None
            yield SeenObject(kind, uid, called, number or (_id(kind, other, known) if matched else None), matched)


def _agree(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> bool:
    """Return true if two objects at one place have the same id, or, without ids, the same name."""
    field = "id" if "id" in baseline and "id" in candidate else "name"
    one, other = baseline.get(field), candidate.get(field)
    return type(one) is str and type(other) is str and one.casefold() == other.casefold()


def _above(baseline: Mapping[str, Any], candidate: Mapping[str, Any] | None) -> Iterator[tuple[Any, Any, Any]]:
    names, uids = baseline.get("ancestor_names") or [], baseline.get("ancestor_uids") or []
    if not (type(names) is type(uids) is list and len(names) == len(uids)):
        return
    same = candidate is not None and candidate.get("ancestor_names") == names
    others = (candidate or {}).get("ancestor_uids") if same else None
    yield from zip(uids, names, others if type(others) is list and len(others) == len(uids) else uids, strict=True)


def _id(kind: str, uid: Any, known: Mapping[str, Uids]) -> str | None:
    """Return the numeric id of a uid of the candidate."""
    found = known[kind].target(uid) if type(uid) is str and kind != "Source" else None
    return found.id if found else None


def _number(value: Any) -> str | None:
    return value if type(value) is str and re.fullmatch(r"[0-9]{1,12}", value) else None
