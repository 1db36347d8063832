"""Uids that the sides cannot share: v3 uids of companies and categories that are not on record. Pure.

Where no v3 uid is on record, v3bridge computes one whose prefix shows its kind. Two objects at the same place, with
the same id and name, and with a computed uid in the candidate's response are the same object; their uids are a
separate kind of difference. So is a request for a uid that only one side can know. Tags and recorded uids are
duplicated in this package: the mappings under test must not decide what counts.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from proxy.tools.compare.judging import paths
from proxy.tools.compare.judging.findings import Difference, Kind
from proxy.traffic.v3_request import V3Request

KIND: Kind = "uid not known"
FOUND, MISSING = 200, (404, "ClientErrorResponse")  # or a 404 whose status is suppressed
HITS, KEYS = "hits", "[*]"
REQUESTED = frozenset((paths.STATUS, HITS, KEYS))  # paths of differences that are caused by a uid in the request
FACET = ".facets[*]"  # end of the path of the values of a facet
LISTS = frozenset(("category_uids", "children_uids", "ancestor_uids"))
FACETS = {
    "brand.uid": "Brand",
    "manufacturer.uid": "Manufacturer",
    "offers.seller.uid": "Seller",
    "category_uids": "Category",
}
OBJECTS = {"brand": "Brand", "manufacturer": "Manufacturer", "seller": "Seller", "sources": "Source"}
# fields that must be equal in two objects that are taken for the same, where both have them
NAMES = ("id", "name", "ancestor_names")

TAGS = {"Seller": "5e11e4", "Brand": "b4a2d0", "Manufacturer": "3a2fac", "Category": "ca7e60", "Source": "50c4ce"}
_LINES = Path(__file__).with_name("recorded_uids.txt").read_text("utf-8").splitlines()
RECORDED = frozenset(line for line in _LINES if not line.startswith("#"))
# paths at which an object of a kind is looked up; a manufacturer as the brand of its id; the others have none
LOOKUPS = {"Seller": "/sellers/", "Brand": "/brands/", "Manufacturer": "/brands/", "Category": "/categories/"}
_UID = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{16}(?![0-9A-Za-z])")
NO_NAMES: Mapping[str, str] = MappingProxyType({})
_CLAUSE = re.compile(r"([\w.]*uids?):(\([^)]*\)|\"[^\"]*\"|\S+)")
_FILTER = re.compile(r"filter\[fields\]\[([\w.]*uids?)\]")


def computed(kind: str | None, uid: Any) -> bool:
    """Return true if a value is a uid that v3bridge computes for objects of a kind; of any kind for None. A source that
    is a seller has the seller's."""
    if type(uid) is not str or not _UID.fullmatch(uid):
        return False
    kinds = TAGS.keys() if kind is None else {kind, "Seller"} if kind == "Source" else {kind}
    return any(uid.startswith(TAGS[each]) for each in kinds & TAGS.keys())


def same_object(field: str, baseline: Mapping[str, Any], candidate: Mapping[str, Any], within: str) -> str | None:
    """Return the name, empty if the baseline lacks it, of the object that `field` denotes in two objects in the field
    `within`, if these are the same and differ in it only because v3's uid is unknown; None otherwise."""
    kind = "Category" if field == "parent_uid" else baseline.get("__class__") or OBJECTS.get(within)
    if type(baseline.get(field)) is not str or not computed(kind, candidate.get(field)):
        return None
    # Another name means another object, and then the uid is rightly different.
    if any(baseline[name] != candidate[name] for name in NAMES if name in baseline and name in candidate):
        return None
    # A seller's computed uid is made of its id, so it can be verified.
    number = str(candidate["id"]) if kind == "Seller" and "id" in candidate else None
    if number is not None and not (number.isdecimal() and f"{TAGS['Seller']}{int(number):010x}" == candidate[field]):
        return None
    names = baseline.get("ancestor_names") if field == "parent_uid" else [baseline.get("name")]
    name = names[-1] if type(names) is list and names else None
    return name if type(name) is str else ""


class UidPair(NamedTuple):
    """Uids of one object, the path of their lookup, and the object's name if the baseline's response has it."""

    baseline: str
    candidate: str
    path: str
    name: str


def pairs(differences: Iterable[Difference]) -> list[UidPair]:
    """Return the pairs of uids in differences of unknown uids that can be looked up."""
    return [
        UidPair(one, TAGS["Brand"] + other[6:] if kind == "Manufacturer" else other, path, difference.name)
        for difference in differences
        if difference.kind == KIND and difference.path not in REQUESTED
        for one, other in zip(_values(difference.baseline), _values(difference.candidate), strict=False)
        for kind, path in LOOKUPS.items()
        if computed(kind, other) and type(one) is str and _UID.fullmatch(one)
    ]


def contradicted(difference: Difference, names: Mapping[str, str]) -> bool:
    """Return true if two uids of a difference denote objects of different names. A facet has several, with counts: it
    is contradicted only if all of the names are known."""
    found = pairs([difference])
    if not difference.path.endswith(FACET):
        expected = ((pair, pair.name or names.get(pair.baseline)) for pair in found)
        return any(name and names.get(pair.candidate, name) != name for pair, name in expected)
    sides = [names.get(pair.baseline) for pair in found], [names.get(pair.candidate) for pair in found]
    if len(found) < len(difference.baseline) or not all(sides[0]) or None in sides[1]:
        return False
    listed = zip(sides, (difference.baseline, difference.candidate), strict=True)
    one, other = (Counter(zip(of, (str(each["count"]) for each in values), strict=True)) for of, values in listed)
    return one != other


def _values(value: Any) -> list[Any]:
    """Return the uids of a field, a list or a facet."""
    return [each.get("value") if type(each) is dict else each for each in (value if type(value) is list else [value])]


def same_list(name: str, within: str, baseline: Mapping[int, Any], candidate: Mapping[int, Any]) -> bool:
    """Return true if the unmatched elements of two lists, by index, are uids of the same objects.

    They are where they have the same indexes or, in a facet, the same counts."""
    if not baseline or len(baseline) != len(candidate):
        return False
    if name in LISTS:
        return baseline.keys() == candidate.keys() and all(computed("Category", uid) for uid in candidate.values())
    kind, values = FACETS.get(within) if name == "facets" else None, (*baseline.values(), *candidate.values())
    if kind is None or not all(type(each) is dict and "value" in each for each in values):
        return False
    # The names of facet values are uids here, so only their counts can be compared.
    counts = (Counter(str(each.get("count")) for each in side.values()) for side in (baseline, candidate))
    return next(counts) == next(counts) and all(computed(kind, each["value"]) for each in candidate.values())


def requested(request: V3Request) -> frozenset[str]:
    """Return the uids of companies and categories that a request names or filters by. Uids of parts are the same on
    both sides."""
    filters = []
    for name, value in request.query:
        if field := _FILTER.match(name):
            filters.append((field[1], value))
        elif name.startswith("filter[queries]"):
            filters += [(clause[1], clause[2]) for clause in _CLAUSE.finditer(value)]
    if request.endpoint.startswith("/parts"):
        return frozenset(uid for field, text in filters if field != "uid" for uid in _UID.findall(text))
    named = frozenset(uid for uid in request.uids if _UID.fullmatch(uid))
    return named.union(uid for _, text in filters for uid in _UID.findall(text))


def explained(
    differences: Iterable[Difference],
    requested_uids: frozenset[str],
    uids: frozenset[str],
    names: Mapping[str, str] = NO_NAMES,
) -> list[Difference]:
    """Reclassify the differences of two responses to a request that names the uids `requested_uids`. `uids` are those
    on record.

    Differences caused by a uid that only one side can know get their own kind; differing uids of an object whose v3 uid
    is on record, or that denote objects of different `names`, become ordinary value differences."""
    left = []
    for each in differences:
        is_known = each.kind == KIND and any(type(uid) is str and uid in uids for uid in _values(each.baseline))
        is_value = is_known or (each.kind == KIND and contradicted(each, names))
        left.append(msgspec.structs.replace(each, kind="value") if is_value else each)
    unknown = [uid for uid in requested_uids if uid not in uids]
    if not unknown:
        return left
    # Computed uids are unknown to the baseline, all others to the candidate.
    ours = frozenset(uid for uid in unknown if computed(None, uid))
    theirs = frozenset(unknown) - ours
    for each in left:
        one, other = each.baseline, each.candidate
        # Nothing else is said where the side that cannot know the uid of a filter has fewer hits.
        is_hits = each.kind == "value" and each.path == HITS and type(one) is type(other) is int
        if is_hits and (theirs if other < one else ours):
            return [msgspec.structs.replace(each, kind=KIND)]
    for at, each in enumerate(left):
        one, other = (each.baseline, each.candidate) if each.kind == "status" else (None, None)
        lacking = (theirs and one == FOUND and other in MISSING) or (ours and one in MISSING and other == FOUND)
        if each.path == KEYS and each.kind in ("missing", "extra"):
            lacking = each.place[1:-1] in (theirs if each.kind == "missing" else ours)
        if lacking:
            left[at] = msgspec.structs.replace(each, kind=KIND)
    return left
