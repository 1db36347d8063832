"""What responses of the upstream have shown of an application's plan: which fields of parts, and how many, it allows.

Held in memory, for each application: a restart or a reload begins anew.
"""

import re
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field

import structlog

from proxy import errors, model

BATCH_BYTES = 4_000_000  # of the parts in a response: reading more at once would delay other requests
MEAN_SHARE = 0.2  # of the latest response in the running mean of a part's size

_WORD = re.compile(r"\w+")

log = structlog.get_logger()


@dataclass(slots=True)
class PlanKnowledge:
    """Features that the plan has, and whether one that is configured was refused; whether whole parts are refused, and
    for which features also those with fewer fields; how many parts an operation may have, and their mean size."""

    shown: set[str] = field(default_factory=set)
    is_less_than_configured: bool = False
    refuses_whole: bool = False
    refused: set[frozenset[str]] = field(default_factory=set)
    accepted_parts: int = model.PARTS_MAX
    part_bytes: float = 0.0

    @property
    def batch_parts(self) -> int:
        """How many parts an operation may return: as many as the upstream accepts, and BATCH_BYTES hold."""
        fitting = BATCH_BYTES // self.part_bytes if self.part_bytes else model.PARTS_MAX
        return max(1, min(self.accepted_parts, int(fitting)))

    def measure(self, sizes: Sequence[int]) -> None:
        """Add the sizes of parts in bytes to their running mean."""
        if sizes:
            mean = sum(sizes) / len(sizes)
            self.part_bytes += (mean - self.part_bytes) * (MEAN_SHARE if self.part_bytes else 1.0)

    def adapt(
        self,
        application: str,
        refusals: Iterable[errors.BridgeError | None],
        requested: Set[str],
        features_named: Callable[[Set[str]], Set[str]],
    ) -> bool:
        """Let batches be smaller, and parts be without features that the upstream refuses, except requested ones.

        `features_named` returns the features that some words name. Return whether whole parts may succeed now.
        """
        may_succeed = True
        for refusal in dict.fromkeys(refusals):  # the queries of an operation have the same
            named: Set[str] = frozenset()
            if isinstance(refusal, errors.QueryRefused):
                named = features_named(refusal.fields | set(_WORD.findall(refusal.message)))
            if isinstance(refusal, errors.OversizedOperation) and refusal.smaller:
                if refusal.smaller < self.accepted_parts:  # not by another request meanwhile
                    self.accepted_parts = refusal.smaller
                    log.warning("batches made smaller", application=application, parts=refusal.smaller)
            elif named:
                if self.shown & named or not self.is_less_than_configured:
                    log.warning("feature refused", application=application, features=sorted(named))
                self.shown -= named
                self.is_less_than_configured = True  # a refusal may name one of several
                may_succeed = may_succeed and named.isdisjoint(requested)
            else:
                may_succeed = False
        return may_succeed
