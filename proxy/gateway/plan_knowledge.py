"""What responses have shown of the plans of applications, and which features of them other processes know, too."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import structlog

from proxy import errors, model
from proxy.kit.periodic import PeriodicTask
from proxy.stores.protocols import NoteStore

BATCH_BYTES = 4_000_000  # of the parts in a response: reading more at once would delay other requests
MEAN_SHARE = 0.2  # of the latest response in the running mean of a part's size
NOTES = "feature of a plan"  # kind of the notes; the owner is the scope of an application and the feature
LOOK_SECONDS = 1.0

_WORD = re.compile(r"\w+")

log = structlog.get_logger()


@dataclass(slots=True)
class PlanKnowledge:
    """What responses have shown of an application's plan.

    Features that the plan has, which the store keeps; the rest begins anew with a restart or a reload: whether a
    configured feature was refused; whether whole parts are refused, and for which features also those with fewer
    fields; how many parts an operation may have, and their mean size.
    """

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


class PlanNotes:
    """Task that shares the features which responses have shown, through the store: a process that does not know them
    fetches parts without these fields, and pays once more when a request asks for them.

    `plans`: by scope of the application, which changes with its credentials. A feature that is refused is forgotten by
    all.
    """

    def __init__(self, store: NoteStore, plans: Mapping[str, PlanKnowledge]) -> None:
        self._store = store
        self._plans = plans
        self._known: dict[str, frozenset[str]] = {}  # by scope, as of the last look
        self._looking = PeriodicTask(
            "features of plans", self.refresh, LOOK_SECONDS, delay=LOOK_SECONDS, logged=errors.StoreUnavailable
        )

    async def start(self) -> None:
        """Learn what is known, and start to look for more."""
        await self._looking.call()
        self._looking.start()

    async def close(self) -> None:
        """Stop the task, and note what it has not noted yet."""
        await self._looking.close()
        await self._looking.call()

    async def refresh(self) -> None:
        """Learn what others have noted or deleted, and note what responses have shown. Raises StoreUnavailable."""
        owners = [owner.rpartition(" ") for owner in await self._store.notes(NOTES)]
        for scope, plan in self._plans.items():
            noted = {feature for each, _, feature in owners if each == scope}
            before = self._known.get(scope, frozenset())
            gone = before - plan.shown  # refused here
            plan.shown |= noted - before
            plan.shown -= before - noted
            known = frozenset(plan.shown)  # a response may show another one meanwhile
            for feature in known - noted:
                await self._store.put_note(NOTES, f"{scope} {feature}", "shown")
            for feature in noted & gone:
                await self._store.drop_note(NOTES, f"{scope} {feature}")
            self._known[scope] = known
