"""Runs of `sheet fill`, from options to exit code: plan and cost first, then fetching, writing and the summary."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from proxy import errors
from proxy.cli import embedded, option_fields, spending
from proxy.cli.shown import table_console
from proxy.config import loader
from proxy.kit import shipped
from proxy.kit.clock import Clock, SystemClock
from proxy.kit.wording import counted, printable
from proxy.tools import event_loop
from proxy.tools.sheet import fill, records
from proxy.tools.sheet.command import fill_options
from proxy.tools.sheet.command.fill_files import FillFiles
from proxy.tools.sheet.command.fill_options import FillOptions
from proxy.tools.sheet.parts import CostEstimate, PartSource

if TYPE_CHECKING:
    from proxy.tools.sheet.columns.job import ColumnsJob
    from proxy.tools.sheet.columns.specs import ColumnSet
    from proxy.tools.sheet.columns.summary_sheet import ListTotals
    from proxy.tools.sheet.formulas.job import FormulaJob

FILLED, INCOMPLETE, NOT_FILLED, FILLED_BESIDE = 0, 1, 2, 3  # exit codes
PROBLEMS_MAX = 20  # lines of cells that are not filled, and of reasons


class FillRun:
    """One run."""

    def __init__(self, options: FillOptions, clock: Clock) -> None:
        self.options = options
        self.clock = clock
        self.files = FillFiles(options)
        self.records = records.FillRecords(options.file)
        self._columns: ColumnSet | None = None
        self._columns_job: ColumnsJob | None = None
        self._formula_job: FormulaJob | None = None

    async def run(self) -> int:
        """Run to the end; return the exit code."""
        from proxy.tools.sheet.package import workbook

        opened_job = self._opened_formulas if self.options.fills_formulas else self._opened_columns
        with self.files.held(), opened_job() as job:
            if self.options.file.suffix.lower() in fill_options.WITH_FORMULAS and workbook.is_signed(self.options.file):
                spending.say("note: the workbook's digital signature is not valid after the change: sign it again")
            async with self._opened_source() as (source, free):
                return await self._filled(job, source, free=free)

    @contextmanager
    def _opened_formulas(self) -> Iterator[fill.FillJob]:
        """Open the file, and find its formulas."""
        from proxy.tools.sheet import libreoffice
        from proxy.tools.sheet.formulas.job import FormulaJob, FormulaOptions
        from proxy.tools.sheet.package import workbook

        options = self.options
        formulas = FormulaOptions(
            as_add_in=options.as_add_in,
            values=options.values,
            rerun_failures=options.rerun_failures,
            login_optional=options.api_key is not None,
            now=self.clock.now(),
        )
        program = libreoffice.find_program(options.libreoffice)
        office = None if program is None else libreoffice.LibreOffice(program)
        with workbook.open_package(options.file) as package:
            job = FormulaJob(package, formulas, office, self.records.fetched)
            self._formula_job = job
            yield job

    @contextmanager
    def _opened_columns(self) -> Iterator[fill.FillJob]:
        """Open the file, and find out what is to be filled."""
        from proxy.tools.sheet.columns import csv_table, job

        options = self.options
        columns = self._columns = _columns(options)
        with job.opened(options.file, options.sheet, options.reading) as table:
            if isinstance(table, csv_table.CsvTable) and columns.offers != 0:
                self.files.add_offers()
            columns_job = job.ColumnsJob(
                table,
                columns,
                reading=options.reading,
                now=self.clock.now(),
                rerun_failures=options.rerun_failures,
                fetched_before=self.records.fetched,
            )
            self._columns_job = columns_job
            yield columns_job

    @asynccontextmanager
    async def _opened_source(self) -> AsyncIterator[tuple[PartSource, bool]]:
        """Open the source of parts, and tell whether its parts are free."""
        from proxy.tools.sheet import sources

        settings = loader.load(self.options.config or shipped.path("config.yaml"), os.environ)
        key = option_fields.read_key(self.options.api_key, "--api-key")
        apikey, login = None if key is None else key.reveal(), None
        free = settings.upstream == "sandbox"
        if self._formula_job is not None and apikey is None:
            found, refresh = self._formula_job.login, self.options.refresh_login
            if free:
                spending.say("note: the workbook's login is not used: the sandbox has an application of its own")
            elif found is not None:
                apikey, login = found.credentials(self.options.file, self.clock.now(), refresh=refresh)
        async with AsyncExitStack() as stack:
            if free:
                sandbox = embedded.endless_sandbox(embedded.add_in_sample())
                settings, _ = await embedded.with_sandbox(settings, stack, sandbox)
            opened = sources.open_source(
                settings,
                self.clock,
                apikey=apikey,
                login=login,
                refresh_login=self.options.refresh_login,
            )
            source = await stack.enter_async_context(opened)
            empty = None if self._columns is None else self._columns.note_without(source.features)
            for note in filter(None, (*(() if free else source.notes), empty)):
                spending.say(f"note: {note}")
            yield source, free

    async def _filled(self, job: fill.FillJob, source: PartSource, *, free: bool) -> int:
        options = self.options
        await self._check_names(job, source)
        for note in job.notes:
            spending.say(f"note: {note}")
        cost = await source.estimate(job.queries, refresh=options.refresh)
        self._print_plan(job, cost, free=free)
        if free:
            spending.say(
                "note: the embedded sandbox knows only its own parts; --config FILE fetches those of a service"
            )
        if options.dry_run:
            return FILLED
        # Nothing has been sent so far: declining costs nothing.
        most = cost.parts + job.later_queries
        if not spending.confirm_cost(most, options.budget, 0, yes=options.yes, free=free):
            return NOT_FILLED
        end = await self._fetched(job, source)
        if self._formula_job is not None and not free and options.api_key is None:
            used = source.upstream_requests > 0
            self._formula_job.end_login(refused=end.refused, used=used, refreshed=options.refresh_login)
        files = self.files
        counts = files.write(job)
        self.records.save(files.target, files.offers, now=self.clock.now())
        if files.left is not None:
            aside = f"the result, for the file as it was read, is in {files.target}"
            spending.say(f"{files.left}: was changed during the run, and stays as it is; {aside}")
        _print_end(end, options, files.target if source.notes else None)
        figures = {f"{job.unit}s": job.lines, **counts, "parts spent": end.parts, "from cache": cost.cached}
        figures["upstream requests"] = source.upstream_requests
        self._print_result(job, figures, end.stopped)
        unreadable = self._columns is not None and bool(job.problems)
        complete = (
            end.stopped is None
            and not unreadable
            and not any(counts[name] for name in counts.keys() - set(fill.COMPLETE))
        )
        if files.left is not None:
            return FILLED_BESIDE
        return FILLED if complete else INCOMPLETE

    def _print_plan(self, job: fill.FillJob, cost: CostEstimate, *, free: bool) -> None:
        if self._columns_job is not None:
            for message in self._columns_job.recognized.messages():
                spending.say(message)
            _print_problems(job.problems, "not read")
        _print_cost(job, cost, self.options, free=free)
        if not (self.options.dry_run and self.options.json):
            return
        figures = {f"{job.unit}s": job.lines, "queries": cost.queries, "from cache": cost.cached}
        figures |= {"parts at most": cost.parts + job.later_queries, "upstream requests": cost.upstream_requests}
        self._print_json(figures, {}, {"problems": job.problems})

    def _print_result(self, job: fill.FillJob, figures: Mapping[str, int], stopped: str | None) -> None:
        files = {"output": self.files.target, "offers": self.files.offers, "backup": self.files.backup}
        totals = None if self._columns_job is None else self._columns_job.totals
        if self._columns_job is None:
            _print_problems(job.problems, "not filled")
        if not self.options.json:
            _print_summary(files, figures, job.reasons)
            if totals is not None:
                _print_totals(totals)
            return
        more: dict[str, object] = {"stopped": stopped, "reasons": job.reasons, "problems": job.problems}
        if totals is not None:
            more["totals"] = {"currency": totals.currency, "amounts": totals.amounts()}
        self._print_json(figures, files, more)

    def _print_json(
        self, figures: Mapping[str, int], files: Mapping[str, Path | None], more: Mapping[str, object]
    ) -> None:
        document: dict[str, object] = {name.replace(" ", "_"): number for name, number in figures.items()}
        document |= {name: str(path) for name, path in files.items() if path} | dict(more)
        if self._columns_job is not None:
            document["recognized"] = self._columns_job.recognized
        typer.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())

    async def _check_names(self, job: fill.FillJob, source: PartSource) -> None:
        """Refuse specs that nobody knows, and tell the job of such distributors: what asks for them alone would be paid
        for, and stay empty."""
        try:
            distributors = await source.unknown_distributors(job.distributors)
            specs = await source.unknown_specs(self._columns.spec_names if self._columns else ())
        except errors.BridgeError as error:
            spending.say(f"note: names of distributors and specs could not be checked: {error.message}")
            return
        for name, near in specs.items():
            raise errors.ConfigError(f"no spec is called {name!r}{_meant(near)}")
        for name, near in distributors.items():
            job.refuse_distributor(name, f"no distributor is called {name!r}{_meant(near)}")

    async def _fetched(self, job: fill.FillJob, source: PartSource) -> fill.FillEnd:
        options = self.options
        with spending.progress_bar("filling", len(job.queries)) as update:

            def tell(progress: fill.FillProgress) -> None:
                update(progress.results, counted(progress.parts, "part"))

            stop = event_loop.stop_on_signal()
            announcer = asyncio.create_task(_announce(stop), name="announcement of the end")
            try:
                return await fill.fetch(
                    job, source, stop, budget=options.budget, refresh=options.refresh, note=self.records.note, tell=tell
                )
            finally:
                announcer.cancel()


async def _announce(stop: asyncio.Event) -> None:
    """Say why the run does not end at once after a signal."""
    await stop.wait()
    spending.say("stopping: requests in flight are paid for, and waited for; a second Ctrl-C ends at once")


def run(options: FillOptions) -> int:
    """Run; return the exit code. A run that a second signal cancels writes nothing."""
    from proxy.telemetry import log

    fill_options.check(options)
    log.configure("error", "console", sys.stderr)
    try:
        return event_loop.run(FillRun(options, SystemClock()).run())
    except SystemExit:
        return NOT_FILLED


def _meant(near: Sequence[str]) -> str:
    return f" (did you mean {', '.join(near)}?)" if near else ""


def _columns(options: FillOptions) -> "ColumnSet":
    """Return the columns; options take precedence over those of a template."""
    from proxy.tools.sheet.columns import specs

    columns = (
        specs.load_template(options.template)
        if options.template
        else specs.ColumnSet(specs.parse_list(options.columns or ""))
    )
    rules = columns.rules
    names = tuple(each.strip() for each in (options.distributors or "").split(",") if each.strip())
    rules = msgspec.structs.replace(
        rules,
        distributors=names or rules.distributors,
        authorized_only=options.authorized_only or rules.authorized_only,
        in_stock=options.in_stock or rules.in_stock,
    )
    currency = columns.currency if options.currency is None else specs.parse_currency(options.currency)
    return columns._replace(rules=rules, currency=currency, offers=specs.parse_offers(options.offers or "all"))


def _print_cost(job: fill.FillJob, cost: CostEstimate, options: FillOptions, *, free: bool) -> None:
    queries = counted(cost.queries, "distinct query", "distinct queries")
    cached = "the cache is ignored" if options.force_rerun_all else f"{cost.cached} in the cache"
    if job.later_queries:
        cached += f"; {counted(job.later_queries, 'query', 'queries')} more at most, which need results of these"
    spending.say(f"{options.file.name}: {counted(job.lines, job.unit)}, {queries}, {cached}")
    limit = "" if options.budget is None else f"; budget {counted(options.budget, 'part')}"
    most = cost.parts + job.later_queries
    if cost.left is not None and cost.left < (most if options.budget is None else min(most, options.budget)):
        limit += f"; the quota has {counted(cost.left, 'part')} left"
    price = "free of charge" if free else f"{counted(most, 'part')} at most{limit}"
    spending.say(f"to fetch: {counted(cost.upstream_requests, 'upstream request')}, {price}")


def _print_end(end: fill.FillEnd, options: FillOptions, only_copy: Path | None) -> None:
    """Say how to continue after an early end. `only_copy` is the filled file, where no cache keeps the results."""
    if end.stopped is None:
        return
    spending.say(f"stopped: {end.stopped}")
    if only_copy is not None:
        spending.say(f"what was fetched is in {only_copy} only: continue with that file and --rerun-failures")
        return
    if end.refused and not end.results and options.config is not None:
        spending.say(f"nothing was fetched: v3bridge doctor --config {options.config} says what to correct")
        return
    again = "without --force-rerun-all" if options.force_rerun_all else "the same command again"
    spending.say(f"what was fetched is kept: run {again} to continue, without paying for it twice")


def _print_totals(totals: "ListTotals") -> None:
    table = Table("distributor", Column("lines", justify="right"), Column(f"total {totals.currency}", justify="right"))
    for each in totals.amounts():
        total = "" if each.total is None else f"{each.total:,.2f}"
        table.add_row(Text(printable(each.distributor)), f"{each.lines:,}", total)
    table_console().print(table)


def _print_problems(problems: Sequence[str], label: str) -> None:
    for problem in problems[:PROBLEMS_MAX]:
        spending.say(f"{label}: {problem}")
    if len(problems) > PROBLEMS_MAX:
        spending.say(f"{label}: {len(problems) - PROBLEMS_MAX} more; --json lists all")


def _print_summary(files: Mapping[str, Path | None], figures: Mapping[str, int], reasons: Mapping[str, int]) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, number in figures.items():
        table.add_row(Text(name), Text(f"{number:,}"))
    for name, path in files.items():
        if path is not None:
            table.add_row(Text(name), Text(printable(str(path))))
    console = Console(soft_wrap=True, highlight=False)
    console.print(table)
    by_number = sorted(reasons.items(), key=lambda each: -each[1])
    for reason, number in by_number[:PROBLEMS_MAX]:
        console.print(Text(printable(f"{number:,} × {reason}")))
    if len(by_number) > PROBLEMS_MAX:
        console.print(f"{len(by_number) - PROBLEMS_MAX} more reasons; --json lists all")
