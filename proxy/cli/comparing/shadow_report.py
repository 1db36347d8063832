"""`v3bridge compare --shadow`: the same report, of what shadows have gathered. Asks nobody."""

from pathlib import Path

from proxy import config, errors
from proxy.cli.comparing import choice, gathered, judgement
from proxy.compare import addresses, shadow_results, summary
from proxy.compare.result import Result
from proxy.compare.settings import Settings
from proxy.compare.tally import Tally
from proxy.kit import clock

SOURCE = "live calls"


def rules(chosen: choice.Choice, service: config.Config) -> Path | None:
    """The file of rules: the one that is chosen, else the shadow's own."""
    return chosen.rules or (None if service.shadow.rules is None else Path(service.shadow.rules))


async def result(settings: Settings, service: config.Config, chosen: choice.Choice) -> Result:
    """All that is in the store. Raises ConfigError where that is nothing."""
    async with gathered.store(service) as store:
        tally = await shadow_results.read(store)
    if tally is None:
        raise errors.ConfigError("nothing was gathered yet: no shadow that uses this store has compared a call")
    site = service.upstream.site if isinstance(service.upstream, config.Upstream) else None
    judged = judgement.of(settings, site, clock.SystemClock(), str, baseline=chosen.baseline)
    return judged.summary.result(tally, _about(tally, service, chosen.budget))


def _about(tally: Tally, service: config.Config, budget: int | None) -> summary.Run:
    listen = service.listen
    return summary.Run(
        started=tally.first or 0.0,
        ended=tally.last or 0.0,
        source=SOURCE,
        old=addresses.base_of(service.shadow.old_url) if service.shadow.old_url else "the old service",
        new=addresses.base_of(f"http://{listen.host}:{listen.port}"),
        budget=budget,
    )
