"""Vocabulary of a comparison: kinds and causes of differences, findings, and the comparison of one request.

Rules, thresholds and reports share these closed sets of words.
"""

from typing import Any, Literal, get_args

import msgspec

from proxy.compare.requests import V3Request

Kind = Literal[
    "status",  # another HTTP status
    "unreadable",  # one side's body is no JSON
    "missing",  # the baseline has it, the candidate has not: a field, or an element of a list
    "extra",  # the other way round
    "value",  # both have it, and it says something else
    "type",  # text where the other has a number, null where it has a list
    "format",  # the same number or moment, written in another way
    "order",  # the same elements in another order
    "twice",  # a key stands twice in an object of one side
    "uid not known",  # the same object under v3's uid and one that v3bridge computed; or a request by such a uid
    "latency",  # the candidate takes longer than it may
]
KINDS: tuple[Kind, ...] = get_args(Kind)

Cause = Literal[
    "no source",  # the service that replaced v3 has nothing like it (v3_fields.yaml)
    "derived",  # made of something else (v3_fields.yaml)
    "moved",  # the data has moved since: asked again, the sides agree, or neither says what it said
    "order",
    "format",
    "error shape",
    "missing part",
    "extra part",
    "status",
    "uid not known",  # an object has a uid of its own on each side; it does not count
    "unknown uid requested",  # a request by a uid that only one side knows; it counts
    "latency",
    "unexplained",
]
CAUSES: tuple[Cause, ...] = get_args(Cause)

ABSENT = msgspec.UNSET  # what a side has where it has nothing


class Difference(msgspec.Struct, frozen=True):
    """One difference. `path` is the same for all of its sort, such as `results[*].items[*].offers[*].prices.USD[*]`;
    `place` is where in this answer, elements by what identifies them. `old` and `new` are JSON values, ABSENT where a
    side has nothing. `said` is the message of the side that refuses, where one does.
    """

    kind: Kind
    path: str
    place: str
    baseline: Any = ABSENT
    candidate: Any = ABSENT
    message: str = ""


class Finding(msgspec.Struct, frozen=True):
    """A difference and its cause."""

    difference: Difference
    cause: Cause


class Comparison(msgspec.Struct, frozen=True):
    """Judgement of the two responses to one request.

    `findings` count; `moved` are differences in data that has changed meanwhile, `unknown_uids` objects whose uids
    differ because v3's is not on record: both are shown and count against nobody. `hidden` is the number of differences
    that each rule ignored, by its name. `flaky_fields` are the paths at which the baseline differs from itself, None
    for a request outside the noise sample.

    `failure` is why there is nothing to compare, and of which side. Seconds are of each side's first response, None
    without one; `parts` is what the candidate cost over all its responses, `price` what its first one cost, None where
    it does not say. `at` is seconds since 1970.
    """

    request: V3Request
    at: float
    findings: tuple[Finding, ...] = ()
    moved: tuple[Finding, ...] = ()
    hidden: dict[str, int] = {}
    flaky_fields: tuple[str, ...] | None = None
    failure: str | None = None
    baseline_seconds: float | None = None
    candidate_seconds: float | None = None
    parts: int = 0
    price: int | None = None
    unknown_uids: tuple[Finding, ...] = ()

    @property
    def equivalent(self) -> bool:
        """Whether a program would see the same."""
        return self.failure is None and not self.findings
