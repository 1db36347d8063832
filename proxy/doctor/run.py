"""One run of `v3bridge doctor`: the stages in their order, and what happens to those that cannot run.

A stage is a module with `check`, which yields findings; its diagnoses are in diagnoses.yaml. It takes from the
Inspection what earlier stages left there, and leaves values for later ones. To add a stage, add its StageCheck.
"""

from collections.abc import AsyncIterator, Callable

from proxy.doctor import configuration, cost, graphql, identity, machine, network, plan, store
from proxy.doctor.findings import CheckResult, Report, Stage, StageName, skipped
from proxy.doctor.inspection import Inspection, StageCheck

STAGES = (
    StageCheck("configuration", configuration.check, is_ready=lambda _: True),
    StageCheck("machine", machine.check),
    StageCheck("network", network.check),
    StageCheck("identity", identity.check, "network", lambda inspection: inspection.reached is not None),
    StageCheck("graphql", graphql.check, "identity", lambda inspection: bool(inspection.tokens)),
    StageCheck("schema", graphql.check_schema, "graphql", lambda inspection: bool(inspection.accepted)),
    StageCheck("plan", plan.check, "graphql", lambda inspection: bool(inspection.accepted)),
    StageCheck("store", store.check),
    StageCheck("cost", cost.check),
)

Observer = Callable[[StageName, CheckResult], None]


async def run(
    inspection: Inspection,
    observe: Observer,
    begin: Callable[[StageName], None] | None = None,
    only: StageName | None = None,
) -> Report:
    """Run all stages, or `only` one and those that it needs. `begin` gets the name of each before it runs, `observe`
    each finding when it is made. The caller closes `inspection.resources`."""
    finished: dict[StageName, Stage] = {}
    for stage in STAGES if only is None else _needed(only):
        if begin is not None:
            begin(stage.name)
        findings: list[CheckResult] = []
        ready = stage.is_ready(inspection)
        async for finding in stage.check(inspection) if ready else _skip(finished[stage.needs]):
            findings.append(finding)
            observe(stage.name, finding)
        finished[stage.name] = Stage(stage.name, tuple(findings))
    return Report(tuple(finished.values()))


def _needed(name: StageName) -> list[StageCheck]:
    """Return a stage after those that it needs, directly or not."""
    stage = next(each for each in STAGES if each.name == name)
    return [stage] if stage is STAGES[0] else [*_needed(stage.needs), stage]


async def _skip(needed: Stage) -> AsyncIterator[CheckResult]:
    yield skipped(f"needs the stage {needed.name}, which {'has failed' if needed.has_failed else 'was skipped'}")
