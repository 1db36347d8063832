"""Options of `compare`, each declared once: name, type, default and help text. Only typer is imported here, so that
`--help` stays fast."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from proxy.kit import shipped

SANDBOX = "sandbox"  # as --baseline: the embedded legacy service


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
        Path | None, typer.Option(metavar="FILE", help="Settings: keys, ignore rules; default: the shipped file.")
    ] = None
    sample: Annotated[int | None, typer.Option(min=1, metavar="N", help="Send at most N requests, of each kind.")] = (
        None
    )
    budget: Annotated[int | None, typer.Option(min=0, metavar="PARTS", help="Most parts that the run may cost.")] = None
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation before parts are spent.")] = False
    baseline_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="API key for the baseline: env:NAME or file:PATH.")
    ] = None
    candidate_key: Annotated[str | None, typer.Option(metavar="KEY", help="API key for the candidate, likewise.")] = (
        None
    )
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Record the baseline's responses, and do not ask again for those in the file; without a candidate, "
            "only that.",
        ),
    ] = None
    learn_uids: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead of comparing: print a table of the v3 uids in a recording."),
    ] = None
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as one HTML page.")] = None
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result as JSON; - is standard output.")
    ] = None

    @property
    def baseline_file(self) -> Path | None:
        """File of baseline responses; None if the baseline is a service."""
        is_file = self.baseline and "://" not in self.baseline and self.baseline != SANDBOX
        return Path(self.baseline) if self.baseline and is_file else None

    @property
    def candidate_config(self) -> Path | None:
        """Configuration of the candidate to start here."""
        return self.config or (shipped("config.yaml") if self.baseline == SANDBOX else None)
