"""Features of applications' tiers, and the size of their batches: what parts are fetched with.

The configuration says which features an application has; where it does not, all are selected, and the first operation
is sent alone with one query. A feature that the tier turns out to lack is left out for a day, then one operation tries
it again; until that has shown it, parts without it are still found. The store keeps this for all processes, and the
size of batches that the upstream accepts.
"""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec
import structlog

from proxy import config, errors, model
from proxy.gateway.applications import Application
from proxy.kit.clock import Clock
from proxy.planning.documents import Documents, ProjectionCache, of_parts
from proxy.store.store import Store

TIER = "tier "  # how the keys of what is kept begin; the application follows
KEPT_SECONDS = 86_400.0
GUESS_SECONDS = 3_600.0  # for which features are left out that may not be the reason of a refusal, or are not guessed
TRIAL_SECONDS = 60.0  # between two operations that try a feature again

_decode = msgspec.json.Decoder(tuple[float | None, float, frozenset[str], int]).decode

log = structlog.get_logger()


class Selected(NamedTuple):
    """Selection set of whole parts with some features, as `bits` in the store, and its documents."""

    bits: int
    features: frozenset[str]
    documents: Documents


class Tier:
    """What is known of an application's tier: the features that it lacks, when an operation has shown that (seconds
    since 1970; None before the first), and until when it is taken for granted; how many parts an operation may have.

    `key` is that of all this in the store: another configuration has another. `is_shown`: the configuration or an
    operation has said which features there are. `selected` is what parts need to have. `first` is the lock of the first
    operations, of which one is sent at a time. `guess_from`: from then on a refusal that names no feature may be about
    one.
    """

    def __init__(
        self, application: Application, features: frozenset[str], select: Callable[[frozenset[str]], Selected]
    ):
        self.name = application.name
        self._is_known = application.has_known_features
        known = " ".join(sorted(application.features)) if self._is_known else "unknown"
        self.key = f"{TIER}{application.account} {known}"
        self._configured = features & application.features
        self._select = select
        self.first, self.guess_from = asyncio.Lock(), 0.0
        self.set(None, 0.0, frozenset(), model.PARTS_MAX)

    def set(self, shown: float | None, until: float, lacking: frozenset[str], parts_max: int) -> None:
        """Replace what is known."""
        self.shown, self.until, self.lacking, self.parts_max = shown, until, lacking, parts_max
        self.selected = self._select(self._configured - lacking)
        self.is_shown = self._is_known or shown is not None

    def fetched(self, without: frozenset[str], now: float) -> Selected:
        """Return what is selected of parts that are fetched, without some features."""
        if not (self.lacking or without):
            return self.selected
        lacking = self.lacking
        if lacking and self.until <= now:
            self.until, lacking = now + TRIAL_SECONDS, frozenset()
        return self._select(self._configured - lacking - without)


class Features:
    """Features that parts are fetched with, by application. `digest` is that of all fields that a part can have;
    `select` returns the selection of some features."""

    def __init__(self, projections: ProjectionCache, store: Store, clock: Clock) -> None:
        self._projections, self._store, self._clock = projections, store, clock
        self._bits = {name: 1 << place for place, name in enumerate(sorted(projections.features))}
        self.digest = config.hex_digest(projections.whole(projections.features).selection)[:16]
        self._tiers: dict[tuple[str, frozenset[str], bool], Tier] = {}
        self.select = functools.cache(self._selected)

    def tier(self, application: Application) -> Tier:
        """Return the tier of an application, in whatever market."""
        key = application.account, application.features, application.has_known_features
        if key not in self._tiers:
            self._tiers[key] = Tier(application, self._projections.features, self.select)
        return self._tiers[key]

    def named(self, reported: Iterable[model.GraphQLError], selected: Selected) -> frozenset[str]:
        """Return the selected features at whose fields the paths of errors end."""
        paths = [each.path for each in reported if isinstance(each.path, list)]
        names = {path[-1] for path in paths if len(path) > 1 and isinstance(path[-1], str)}
        return self._projections.features_named(names) & selected.features if names else frozenset()

    async def keep(self, tier: Tier, selected: Selected, lacking: frozenset[str], *, is_guess: bool = False) -> None:
        """Keep that an operation has shown the features that were selected, but for some that the tier lacks, or may
        lack."""
        now, known = self._clock.now(), tier.lacking - selected.features | lacking
        tier.set(now, now + (GUESS_SECONDS if is_guess else KEPT_SECONDS), known, tier.parts_max)
        if lacking:
            log.warning("features lacking", application=tier.name, features=sorted(lacking))
        await self.put(tier)

    async def refresh(self, applications: Iterable[Application]) -> None:
        """Learn what other processes know. Raises StoreUnavailable."""
        tiers = {self.tier(application).key: self.tier(application) for application in applications}
        for tier, text in zip(tiers.values(), await self._store.values([*tiers]), strict=True):
            if text is None:
                tier.parts_max = model.PARTS_MAX
                continue
            shown, until, lacking, tier.parts_max = _decode(text)
            if shown is not None and (tier.shown is None or tier.shown < shown):
                tier.set(shown, until, lacking, tier.parts_max)

    async def put(self, tier: Tier) -> None:
        """Let other processes know a tier, if the store takes it."""
        text = msgspec.json.encode((tier.shown, tier.until, sorted(tier.lacking), tier.parts_max)).decode()
        with contextlib.suppress(errors.StoreUnavailable):
            # For longer, so that a process that starts then still finds the parts that have been fetched without them.
            await self._store.put_value(tier.key, text, 2 * KEPT_SECONDS)

    def _selected(self, features: frozenset[str]) -> Selected:
        documents = of_parts(self._projections.whole(features).selection)
        return Selected(sum(self._bits[name] for name in features), features, documents)
