"""Features of applications' tiers, and the size of their batches: what parts are fetched with.

The configuration says which features an application has; where it does not, all are selected, and the first operation
is sent alone with one query. A feature that the tier turns out to lack is left out for a day, then one operation tries
it again; until that has shown it, parts without it are still found. The store keeps this for all processes, and the
size of batches that the upstream accepts.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import structlog

from proxy import errors, model
from proxy.gateway.applications import Application
from proxy.kit.clock import Clock
from proxy.planning.fetches import Documents
from proxy.planning.projection_cache import ProjectionCache
from proxy.store.store import Store

TIER = "tier "  # how the keys of what is kept begin; the application follows
KEPT_SECONDS = 86_400.0
GUESS_SECONDS = 3_600.0  # for which features are left out that may not be the reason of a refusal
TRIAL_SECONDS = 60.0  # between two operations that try a feature again

_decode = msgspec.json.Decoder(tuple[float | None, float, frozenset[str], int]).decode

log = structlog.get_logger()


class Selected(NamedTuple):
    """Selection set of whole parts with some features, as `bits` in the store, and its documents."""

    bits: int
    features: frozenset[str]
    documents: Documents


@dataclass(slots=True)
class _Tier:
    """What is known of an application: the features that it lacks, when an operation has shown that (seconds since
    1970; None before the first), and until when it is taken for granted; the lock of the first operations, of which one
    is sent at a time; how many parts an operation may have."""

    lacking: frozenset[str] = frozenset()
    shown: float | None = None
    until: float = 0.0
    parts_max: int = model.PARTS_MAX
    first: asyncio.Lock = field(default_factory=asyncio.Lock)


class Features:
    """Features that parts are fetched with, by application. `digest` is that of all fields that a part can have."""

    def __init__(self, projections: ProjectionCache, store: Store, clock: Clock) -> None:
        self._projections = projections
        self._store = store
        self._clock = clock
        self._bits = {name: 1 << place for place, name in enumerate(sorted(projections.features))}
        self.digest = hashlib.sha256(projections.whole(projections.features).selection.encode()).hexdigest()[:16]
        self._tiers: dict[tuple[str, frozenset[str] | None], _Tier] = {}
        self._selected: dict[frozenset[str], Selected] = {}

    def of(self, application: Application) -> frozenset[str]:
        """Return the features that an application is known or taken to have."""
        return self._configured(application) - self._tier(application).lacking

    def selected(self, application: Application) -> Selected:
        """Return what parts need to have for an application."""
        return self._select(self.of(application))

    def fetched(self, application: Application, without: frozenset[str]) -> Selected:
        """Return what is selected of parts that are fetched, without some features."""
        tier, now = self._tier(application), self._clock.now()
        if tier.lacking and tier.until <= now:
            tier.until = now + TRIAL_SECONDS
            return self._select(self._configured(application) - without)
        return self._select(self.of(application) - without)

    def common(self, selected: Selected, other: Selected, lacking: frozenset[str]) -> Selected:
        """Return what parts of both selections have, without the fields of features that the tier lacks: nulls."""
        if other is selected and not lacking:
            return selected
        return self._select(selected.features & other.features - lacking)

    def parts_max(self, application: Application) -> int:
        """Return how many parts an operation may have."""
        return self._tier(application).parts_max

    def first(self, application: Application) -> asyncio.Lock | None:
        """Return the lock of an application's first operations; None if its features are known."""
        tier = self._tier(application)
        return tier.first if application.features is None and tier.shown is None else None

    def named(self, reported: Iterable[model.GraphQLError], selected: Selected) -> frozenset[str]:
        """Return the selected features at whose fields the paths of errors end."""
        paths = [each.path for each in reported if isinstance(each.path, list)]
        names = {path[-1] for path in paths if len(path) > 1 and isinstance(path[-1], str)}
        return self._projections.features_named(names) & selected.features if names else frozenset()

    def is_partial(self, reported: Sequence[model.GraphQLError], selected: Selected) -> bool:
        """Return whether errors beside data are about anything but features that the tier lacks."""
        return any(not self.named([each], selected) for each in reported)

    async def keep(
        self, application: Application, selected: Selected, lacking: frozenset[str], *, is_guess: bool = False
    ) -> None:
        """Keep that an operation has shown the features that were selected, but for some that the application lacks, or
        may lack. Raises StoreUnavailable; then this process knows it."""
        tier = self._tier(application)
        known = tier.lacking - selected.features | lacking
        if known == tier.lacking and not lacking and tier.shown is not None:
            return
        tier.lacking, tier.shown = known, self._clock.now()
        tier.until = tier.shown + (GUESS_SECONDS if is_guess else KEPT_SECONDS)
        if lacking:
            log.warning("features lacking", application=application.name, features=sorted(lacking))
        await self._put(application)

    async def keep_parts_max(self, application: Application, parts: int) -> None:
        """Keep how many parts an operation may have. Raises StoreUnavailable; then this process knows it."""
        tier = self._tier(application)
        if parts < tier.parts_max:
            tier.parts_max = parts
            log.warning("batches made smaller", application=application.name, parts=parts)
            await self._put(application)

    async def refresh(self, applications: Iterable[Application]) -> None:
        """Learn what other processes know. Raises StoreUnavailable."""
        keys = {f"{TIER}{_key(application)}": application for application in applications}
        for application, text in zip(keys.values(), await self._store.values([*keys]), strict=True):
            tier = self._tier(application)
            if text is None:
                tier.parts_max = model.PARTS_MAX
                continue
            shown, until, lacking, tier.parts_max = _decode(text)
            if shown is not None and (tier.shown is None or tier.shown < shown):
                tier.lacking, tier.shown, tier.until = lacking, shown, until

    async def _put(self, application: Application) -> None:
        tier = self._tier(application)
        text = msgspec.json.encode((tier.shown, tier.until, sorted(tier.lacking), tier.parts_max)).decode()
        # For longer, so that a process that starts then still finds the parts that have been fetched without them.
        await self._store.put_value(f"{TIER}{_key(application)}", text, 2 * KEPT_SECONDS)

    def _configured(self, application: Application) -> frozenset[str]:
        features = self._projections.features
        return features if application.features is None else features & application.features

    def _tier(self, application: Application) -> _Tier:
        key = application.account, application.features
        if key not in self._tiers:
            self._tiers[key] = _Tier()
        return self._tiers[key]

    def _select(self, features: frozenset[str]) -> Selected:
        if features not in self._selected:
            bits = sum(self._bits[name] for name in features)
            documents = Documents(self._projections.whole(features).selection)
            self._selected[features] = Selected(bits, features, documents)
        return self._selected[features]


async def learn(keeping: Coroutine[Any, Any, None]) -> None:
    """Keep what was learned for other processes, too, if the store takes it."""
    with contextlib.suppress(errors.StoreUnavailable):
        await keeping


def _key(application: Application) -> str:
    """Return the key of what is known of an application's features: another configuration has another."""
    features = "unknown" if application.features is None else " ".join(sorted(application.features))
    return f"{application.account} {features}"
