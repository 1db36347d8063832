"""Options of `compare`, each declared once: name, type, default and help text.

`ComparisonOptions` is the value that the command works with; its fields become typer's parameters. Only
typer is imported here, so that `--help` stays fast; `checks.py` refuses options that contradict each other.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

SANDBOX = "sandbox"  # as --baseline: the embedded legacy service
STANDARD_OUTPUT = Path("-")


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions:
    """Options that the user chose. The order of the fields is that of the help text."""

    baseline: Annotated[
        str | None,
        typer.Option(metavar="URL|FILE", help="Baseline: the old service, or a file of its responses; or: sandbox."),
    ] = None
    candidate: Annotated[
        str | None, typer.Option(metavar="URL", help="Candidate: the new service, already running.")
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead of --candidate: start a candidate with this configuration."),
    ] = None
    requests: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Requests to send: access log, HAR, URLs, parts list, …")
    ] = None
    rules: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Settings: ignore rules, keys, thresholds; default: the shipped file."),
    ] = None
    sample: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Send at most N requests, a stratified sample.")
    ] = None
    seed: Annotated[int, typer.Option(help="Seed of the sample and of the order.")] = 1
    budget: Annotated[int | None, typer.Option(min=0, metavar="PARTS", help="Most parts that the run may cost.")] = None
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation before parts are spent.")] = False
    baseline_key: Annotated[
        str | None,
        typer.Option(metavar="env:NAME|file:PATH", help="API key for the baseline, for every client."),
    ] = None
    candidate_key: Annotated[
        str | None,
        typer.Option(metavar="env:NAME|file:PATH", help="API key for the candidate, for every client."),
    ] = None
    baseline_rate: Annotated[
        float | None,
        typer.Option(min=0, help="Requests per second to the baseline; default 3, as in v3; 0: no limit."),
    ] = None
    candidate_rate: Annotated[float, typer.Option(min=0, help="Requests per second to the candidate; 0: no limit.")] = (
        0.0
    )
    baseline_concurrency: Annotated[int, typer.Option(min=1, max=256, help="Concurrent requests to the baseline.")] = 4
    candidate_concurrency: Annotated[
        int, typer.Option(min=1, max=256, help="Concurrent requests to the candidate.")
    ] = 4
    timeout: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds for a complete response.")] = 60.0
    progress: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Progress file of the run; default: in the state directory.")
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Start again, whatever progress was saved.")] = False
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Record the responses, without keys; without a candidate, only those of the baseline, at no cost.",
        ),
    ] = None
    learn_uids: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Instead of comparing: print a table of the v3 uids in a recording, or in JSON lines of responses.",
        ),
    ] = None
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as one HTML page; - is standard output.")
    ] = None
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result as JSON; - is standard output.")
    ] = None
    fail_on: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Thresholds that fail the run, such as missing-part,price>1%; see the docs."),
    ] = None
    ignored_limits: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Fail if a rule ignores more than in the run that saved this file."),
    ] = None
    save_ignored: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save how much each rule ignored, for --ignored-limits.")
    ] = None
    log_level: Annotated[str, typer.Option(help="Level of the log on standard error: debug, info, warning, error.")] = (
        "error"
    )

    @property
    def only_records(self) -> bool:
        """Whether the responses of the baseline are recorded and compared with nothing."""
        return self.record is not None and not (self.candidate or self.config or self.baseline == SANDBOX)

    @property
    def baseline_file(self) -> Path | None:
        """File of baseline responses; None if the baseline is a service."""
        is_file = self.baseline and "://" not in self.baseline and self.baseline != SANDBOX
        return Path(self.baseline) if self.baseline and is_file else None
