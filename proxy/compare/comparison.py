"""One call, asked of both sides and judged: what a run notes, a shadow passes on, and a tally adds up."""

import msgspec

from proxy.compare.calls import Call
from proxy.compare.differences import Finding


class Comparison(msgspec.Struct, frozen=True):
    """`findings` are what is left when rules and data that has moved are out; `moved` is that data, which is shown and
    counts against nobody, and `unknown_uids` are objects under uids that differ because v3's is on no record, of which
    the same holds; `hidden` says how many differences each rule took, by the rule's name; `wavers` are the paths
    at which the old side disagreed with itself, None for a call outside the sample that is asked twice to know that.

    `trouble` is why there is nothing to compare, and of which side. Seconds are of each side's first answer, None where
    there was none; `parts` is what the new side was paid, over all its answers, `price` what its first one alone cost,
    None where it does not say. `at` is seconds since 1970.
    """

    call: Call
    at: float
    findings: tuple[Finding, ...] = ()
    moved: tuple[Finding, ...] = ()
    hidden: dict[str, int] = {}
    wavers: tuple[str, ...] | None = None
    trouble: str | None = None
    old_seconds: float | None = None
    new_seconds: float | None = None
    parts: int = 0
    price: int | None = None
    unknown_uids: tuple[Finding, ...] = ()

    @property
    def equivalent(self) -> bool:
        """Whether a program would see the same."""
        return self.trouble is None and not self.findings
