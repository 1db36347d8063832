"""Result of all comparisons of shadowing that are in the store, with a verdict as that of a run."""

import msgspec

from proxy import config
from proxy.kit.clock import Clock
from proxy.shadow import results
from proxy.stores.protocols import NoteStore
from proxy.tools.compare.judging import rules, summary
from proxy.tools.compare.judging.settings import ComparisonSettings
from proxy.tools.compare.judging.tally import Tally
from proxy.tools.compare.results import ComparisonResult
from proxy.tools.compare.running import judgement
from proxy.traffic import http_side

SOURCE = "live requests"


async def read_tally(store: NoteStore) -> Tally | None:
    """Read the sum of all workers' tallies; None where there is none. Raises StoreUnavailable."""
    tallies = [msgspec.json.decode(tally, type=Tally) for tally in await results.tallies(store)]
    for tally in tallies[1:]:
        tallies[0].merge(tally)
    return tallies[0] if tallies else None


async def read(
    store: NoteStore,
    service: config.Config,
    settings: ComparisonSettings,
    clock: Clock,
    *,
    budget: int | None = None,
    ignored_counts: rules.IgnoredCounts | None = None,
) -> ComparisonResult | None:
    """Return the result; None where no request has been compared. `service` is the configuration of the service whose
    requests they were. Raises StoreUnavailable."""
    tally = await read_tally(store)
    if tally is None:
        return None
    site = service.upstream.site if isinstance(service.upstream, config.UpstreamSettings) else None
    judged = judgement.build(settings, site, clock, str, baseline=ignored_counts)
    listen, old = service.listen, service.shadow.baseline_url
    about = summary.RunInfo(
        started=tally.first or 0.0,
        ended=tally.last or 0.0,
        source=SOURCE,
        baseline=http_side.base_url(old) if old else "the old service",
        candidate=http_side.base_url(f"http://{listen.host}:{listen.port}"),
        budget=budget,
    )
    return judged.summary.result(tally, about)
