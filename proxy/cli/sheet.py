"""`v3bridge sheet`: fills spreadsheets with parts data, through the quota and cache of the service.

`sheet fill` prints plan and cost first, then fetches, writes and prints a summary. Exit code 0: every line has a part;
1: the file is written, but some lines lack one, or the run stopped early; 2: a mistake in options or the file, or a
declined cost: nothing is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proxy.cli import spending
from proxy.kit import event_loop
from proxy.kit.wording import counted
from proxy.sheet import fill
from proxy.sheet.parts import CostEstimate, PartSource

FILLED, INCOMPLETE, NOT_FILLED = 0, 1, 2  # exit codes
COMPLETE = ("found", "stale")  # outcomes of a line that has a part


@dataclass(frozen=True, kw_only=True)
class FillOptions:
    """Options of `sheet fill`. The order of the fields is that of the help text."""

    file: Annotated[Path, typer.Argument(help="A parts list: .csv, .tsv, .xlsx or .xlsm.")]
    columns: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Columns to add, such as price@100,stock; see `v3bridge sheet columns`."),
    ] = None
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The configuration; the embedded sandbox if omitted.")
    ] = None
    api_key: Annotated[
        str | None, typer.Option(metavar="env:NAME|file:PATH", help="API key of the proxy that is charged.")
    ] = None
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Fill the file itself, after a backup, instead of a copy.")
    ] = False
    budget: Annotated[int | None, typer.Option(min=0, metavar="PARTS", help="Most parts that the run may cost.")] = None
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation before parts are spent.")] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cost and end; nothing is fetched.")] = False
    rerun_failures: Annotated[
        bool, typer.Option("--rerun-failures", help="Fetch only what failed before; the other values stay.")
    ] = False
    force_rerun_all: Annotated[
        bool, typer.Option("--force-rerun-all", help="Fetch everything anew, whatever the cache has.")
    ] = False
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False


class FillSummary(msgspec.Struct):
    """Summary of a run, as `--json` prints it."""

    file: str
    output: str | None
    lines: int
    queries: int
    counts: Mapping[str, int]
    parts_spent: int
    from_cache: int
    upstream_requests: int
    stopped: str | None = None


async def filled(job: fill.FillJob, source: PartSource, options: FillOptions, target: Path, *, free: bool) -> int:
    """Print the cost, ask for confirmation, fetch, write and print the summary; return the exit code."""
    cost = await source.estimate(job.queries, refresh=options.force_rerun_all)
    _print_plan(job, cost, options, free=free)
    if options.dry_run:
        return FILLED
    # Nothing has been sent so far: declining costs nothing.
    if not spending.confirm_cost(cost.parts, options.budget, 0, yes=options.yes, free=free):
        return NOT_FILLED
    end = await _fetched(job, source, options)
    counts = job.write(target)
    _print_end(end)
    summary = FillSummary(
        file=str(options.file),
        output=str(target),
        lines=job.lines,
        queries=cost.queries,
        counts=counts,
        parts_spent=end.parts,
        from_cache=cost.cached,
        upstream_requests=source.upstream_requests,
        stopped=end.stopped,
    )
    _print_summary(summary, as_json=options.json)
    complete = end.stopped is None and not any(counts[name] for name in counts.keys() - set(COMPLETE))
    return FILLED if complete else INCOMPLETE


async def _fetched(job: fill.FillJob, source: PartSource, options: FillOptions) -> fill.FillEnd:
    with spending.progress_bar("filling", len(job.queries)) as update:

        def tell(progress: fill.FillProgress) -> None:
            update(progress.results, counted(progress.parts, "part"))

        stop = event_loop.stop_on_signal()
        return await fill.fetch(job, source, stop, budget=options.budget, refresh=options.force_rerun_all, tell=tell)


def _print_plan(job: fill.FillJob, cost: CostEstimate, options: FillOptions, *, free: bool) -> None:
    queries = "distinct query", "distinct queries"
    spending.say(
        f"{options.file.name}: {counted(job.lines, 'line')}, {counted(cost.queries, *queries)}, "
        f"{cost.cached} in the cache"
    )
    limit = "" if options.budget is None else f"; budget {counted(options.budget, 'part')}"
    price = "free of charge" if free else f"{counted(cost.parts, 'part')} at most{limit}"
    spending.say(f"to fetch: {counted(cost.upstream_requests, 'upstream request')}; {price}")


def _print_end(end: fill.FillEnd) -> None:
    if end.stopped is None:
        return
    spending.say(f"stopped: {end.stopped}")
    spending.say(
        f"{counted(end.results, 'result')} fetched and in the cache: run the same command again to continue; "
        "they cost nothing then"
    )


def _print_summary(summary: FillSummary, *, as_json: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode())
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    rows = {"lines": summary.lines, **summary.counts, "parts spent": summary.parts_spent}
    rows |= {"from the cache": summary.from_cache, "upstream requests": summary.upstream_requests}
    for name, number in rows.items():
        table.add_row(Text(name), Text(f"{number:,}"))
    table.add_row(Text("output"), Text(str(summary.output)))
    Console(soft_wrap=True).print(table)
