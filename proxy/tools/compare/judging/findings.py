"""Vocabulary of a comparison: kinds and causes of differences, findings, the comparison of one request, and the ignore
rules of compare.yaml.

Rules and reports share these closed sets of words.
"""

from datetime import date
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from proxy.config import Settings as Block
from proxy.traffic.v3_request import V3Request

Kind = Literal[
    "status",  # another HTTP status
    "unreadable",  # one side's body is no JSON
    "missing",  # the baseline has it, the candidate does not: a field, or an element of a list
    "extra",  # the candidate has it, the baseline does not
    "value",  # both have it, with different values
    "type",  # different JSON types, such as text and number, or null and list
    "format",  # the same number or time in another spelling
    "order",  # the same elements in another order
    "uid not known",  # the same object under v3's uid and under one that v3bridge computed; or a request for such a uid
]

Cause = Literal[
    "no source",  # the Nexar API has no such data (v3_fields.yaml)
    "derived",  # derived from other data (v3_fields.yaml)
    "moved",  # a price or stock that changed within the run: the repeated baseline agrees
    "order",
    "format",
    "error shape",
    "missing part",
    "extra part",
    "status",
    "uid not known",  # an object has a different uid on each side; does not count
    "unsupported",  # the candidate names what it could not honor
    "unknown uid requested",  # the request names a uid that only one side knows; counts
    "unexplained",
]
CAUSES: tuple[Cause, ...] = get_args(Cause)

ABSENT = msgspec.UNSET  # value of a side that lacks the field or element


class Difference(msgspec.Struct, frozen=True):
    """One difference between two responses.

    `path` is common to all differences of its sort, such as `results[*].items[*].offers[*].prices.USD[*]`; `place`
    locates this one, with elements named by their identity. `baseline` and `candidate` are JSON values, ABSENT where a
    side has none. `message` is the error message of the side that refused the request, `name` the name of the object
    that has the uid, where the difference is of a uid; each is empty where there is none."""

    kind: Kind
    path: str
    place: str
    baseline: Any = ABSENT
    candidate: Any = ABSENT
    message: str = ""
    name: str = ""


class Finding(msgspec.Struct, frozen=True):
    """Difference with its cause."""

    difference: Difference
    cause: Cause


class Comparison(msgspec.Struct, frozen=True):
    """Judgement of the two responses to one request.

    `findings` count. `moved` (a price or stock that changed within the run) and `unknown_uids` (objects whose v3 uid is
    not on record) are reported and do not count. `ignored` is the number of ignored differences by rule name.
    `succeeded`: both services responded with 200; `may_have_moved`: a price or stock differs."""

    request: V3Request
    findings: tuple[Finding, ...] = ()
    moved: tuple[Finding, ...] = ()
    unknown_uids: tuple[Finding, ...] = ()
    ignored: dict[str, int] = {}
    succeeded: bool = False
    may_have_moved: bool = False


class IgnoreRule(Block, frozen=True):
    """Rule to ignore differences of a user's own services until a day: those at `path`, with `cause`, or both. The
    first rule that matches a difference takes it."""

    reason: Annotated[str, Meta(pattern=r"\S", description="why this may differ, in words")]
    expires: Annotated[date | None, Meta(description="the last day that it holds, such as 2027-01-31, or never")]
    path: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="a path such as results[*].items[*].mpn; * is any key, ** any number of steps"),
    ] = None
    cause: Annotated[Cause | None, Meta(description=f"one of {', '.join(CAUSES)}")] = None

    @property
    def name(self) -> str:
        """Name in reports."""
        return ", ".join(filter(None, (self.path, self.cause)))
