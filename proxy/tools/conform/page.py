"""Page about compatibility, docs/reference/compatibility.md: every assumption with its evidence, by tier."""

from collections.abc import Iterator, Sequence

import msgspec

from proxy.tools.conform.assumptions import Assumption, Tier
from proxy.tools.conform.evidence import Evidence, Observation
from proxy.tools.conform.reading import Catalogue
from proxy.tools.conform.results import Service

TIERS: dict[Tier, str] = {
    "core": "The proxy serves wrong or no responses where one of these does not hold.",
    "complete": "Some fields, filters or error responses differ where one of these does not hold.",
    "strict": "Nothing that a v3 client usually sees depends on these.",
}
"""What depends on the assumptions of a tier."""

_MARKS = {
    "SDL": "read from a real schema file",
    "DOC": "stated on a page of the vendor",
    "REC": "seen in a recorded response",
    "CLI": "seen in code of clients",
    "SRC": "read in open-source server code that the service very probably runs",
    "INF": "inferred",
    "OWN": "no public source",
}
_HEAD = """# Compatibility

What v3bridge assumes about the Nexar services, and what was observed. [`v3bridge conform`](../how-to/conform.md) tests
each assumption with a probe. Each holds on the sandbox and has not been observed on Nexar, unless its row says
otherwise. This page is generated from `proxy/tools/conform/` and `docs/reference/compatibility.yaml`.
"""
_ESCAPED = str.maketrans({"|": "\\|", "\n": " ", "<": "&lt;"})


def render(catalogue: Catalogue, evidence: Evidence) -> str:
    """Return the page as Markdown."""
    observed = [each for observations in evidence.values() for each in observations]
    lines = [_HEAD, *_summary(catalogue, evidence), *_runs(observed)]
    for tier, meaning in TIERS.items():
        lines += [f"## {tier.capitalize()}", "", meaning, "", *_table(catalogue, evidence, tier), ""]
    lines += ["## Evidence marks", "", "| mark | meaning |", "|---|---|"]
    lines += [f"| {mark} | {meaning} |" for mark, meaning in _MARKS.items()]
    return "\n".join(lines) + "\n"


def _summary(catalogue: Catalogue, evidence: Evidence) -> Iterator[str]:
    yield "## Summary"
    yield ""
    yield "Coverage is the share of assumptions that were observed; correctness is the share of those that hold."
    yield ""
    yield "| tier | assumptions | sandbox: coverage | correctness | Nexar: coverage | correctness |"
    yield "|---|---|---|---|---|---|"
    for tier in TIERS:
        ids = [assumption.id for assumption in catalogue.assumptions if assumption.tier == tier]
        cells = [cell for service in ("sandbox", "Nexar") for cell in _shares(ids, evidence, service)]
        yield f"| {tier} | {len(ids)} | {' | '.join(cells)} |"
    yield ""
    if not any(each.service == "Nexar" for observations in evidence.values() for each in observations):
        yield "The real service has not been observed yet: what is known about it is the public evidence below."
        yield ""


def _shares(ids: Sequence[str], evidence: Evidence, service: Service) -> tuple[str, str]:
    """Return coverage and correctness, as text."""
    latest = [observation for id in ids if (observation := _latest(evidence.get(id, ()), service)) is not None]
    holding = sum(observation.holds for observation in latest)
    return f"{len(latest)} of {len(ids)}", f"{holding} of {len(latest)}" if latest else "–"


def _latest(observations: Sequence[Observation], service: Service) -> Observation | None:
    return max((each for each in observations if each.service == service), key=lambda each: each.date, default=None)


def _runs(observed: Sequence[Observation]) -> Iterator[str]:
    """Yield a table of the runs, so that each row of the others need not repeat date and plan."""
    yield "## Runs"
    yield ""
    yield "| service | date | program | plan | confirmed | contradicted |"
    yield "|---|---|---|---|---|---|"
    runs = sorted({(each.service, each.date, each.version, each.plan) for each in observed}, key=str)
    for service, date, version, plan in runs:
        verdicts = [
            each.holds
            for each in observed
            if (each.service, each.date, each.version, each.plan) == (service, date, version, plan)
        ]
        yield f"| {service} | {date} | {version} | {plan} | {sum(verdicts)} | {len(verdicts) - sum(verdicts)} |"
    yield ""


def _table(catalogue: Catalogue, evidence: Evidence, tier: Tier) -> Iterator[str]:
    yield "| assumption | contract | used by |"
    yield "|---|---|---|"
    for assumption in catalogue.assumptions:
        if assumption.tier == tier:
            observations = evidence.get(assumption.id, ())
            yield _row(assumption, _latest(observations, "sandbox"), _latest(observations, "Nexar"))


def _row(assumption: Assumption, sandbox: Observation | None, real: Observation | None) -> str:
    notes = [
        *([] if sandbox is not None and sandbox.holds else [f" **Sandbox: {_cell(sandbox)}.**"]),
        *([] if real is None else [f" **Nexar: {_cell(real)}.**"]),
    ]
    cells = (
        f"`{assumption.id}`: {assumption.statement}{''.join(notes)}",
        f"{assumption.source} {assumption.evidence}",
        assumption.used_by,
    )
    return f"| {' | '.join(cell.translate(_ESCAPED) for cell in cells)} |"


def _cell(observation: Observation | None) -> str:
    if observation is None:
        return "not observed"
    if observation.holds:
        return f"confirmed {observation.date}"
    return f"contradicted {observation.date}: `{msgspec.json.encode(observation.got).decode()}`"
