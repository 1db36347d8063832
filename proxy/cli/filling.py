"""Runs of `sheet fill`, from options to exit code: plan and cost first, then fetching, writing and the summary."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proxy import errors
from proxy.cli import embedded, option_fields, spending
from proxy.config import loader
from proxy.kit import event_loop, shipped
from proxy.kit.clock import Clock, SystemClock
from proxy.kit.wording import counted, printable
from proxy.sheet import fill, records
from proxy.sheet.parts import CostEstimate, PartSource, Refresh

if TYPE_CHECKING:
    from proxy.sheet.columns.specs import ColumnSet
    from proxy.sheet.formulas.opening import LoginSession

FILLED, INCOMPLETE, NOT_FILLED = 0, 1, 2  # exit codes
WITH_FORMULAS = (".xlsx", ".xlsm")
ONLY_FORMULAS = ("as_add_in", "values", "refresh_login", "libreoffice")
ONLY_COLUMNS = (
    *("currency", "distributors", "authorized_only", "in_stock", "sheet"),
    *("mpn_column", "manufacturer_column", "sku_column", "quantity_column"),
)
PROBLEMS_MAX = 20  # lines of cells that are not filled
COMPLETE = ("found", "stale")  # outcomes of a line that has a part


@dataclass(frozen=True, kw_only=True)
class FillOptions:
    """Options of `sheet fill`. The order of the fields is that of the help text."""

    file: Annotated[Path, typer.Argument(help="A parts list: .csv, .tsv, .xlsx or .xlsm.")]
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Columns to add, such as price@100,stock; see `v3bridge sheet columns`. Without columns, the formulas "
            "of a workbook that have functions of the Nexar or Octopart add-in are filled.",
        ),
    ] = None
    template: Annotated[
        str | None, typer.Option(metavar="FILE[:NAME]", help="Instead of --columns: a named set of columns and rules.")
    ] = None
    currency: Annotated[
        str | None, typer.Option(metavar="CODE", help="Currency of prices without one of their own; default USD.")
    ] = None
    distributors: Annotated[
        str | None, typer.Option(metavar="LIST", help="Only offers of these distributors: parts of names, or ids.")
    ] = None
    authorized_only: Annotated[
        bool, typer.Option("--authorized-only", help="Only offers of authorized distributors.")
    ] = False
    in_stock: Annotated[bool, typer.Option("--in-stock", help="Only offers whose stock covers the quantity.")] = False
    sheet: Annotated[
        str | None, typer.Option(metavar="NAME", help="Sheet of a workbook; default: the first with part numbers.")
    ] = None
    mpn_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column of part numbers: its heading or letter.")
    ] = None
    manufacturer_column: Annotated[str | None, typer.Option(metavar="NAME", help="Column of manufacturers.")] = None
    sku_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column of distributors' numbers, for lines without part number.")
    ] = None
    quantity_column: Annotated[str | None, typer.Option(metavar="NAME", help="Column of quantities.")] = None
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The configuration; the embedded sandbox if omitted.")
    ] = None
    api_key: Annotated[
        str | None, typer.Option(metavar="env:NAME|file:PATH", help="API key of the configuration that is charged.")
    ] = None
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The filled copy; default: BOM.filled.xlsx beside BOM.xlsx.")
    ] = None
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Fill the file itself, after a backup, instead of a copy.")
    ] = False
    budget: Annotated[int | None, typer.Option(min=0, metavar="PARTS", help="Most parts that the run may cost.")] = None
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation before parts are spent.")] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cost and end; nothing is fetched.")] = False
    rerun_failures: Annotated[
        bool, typer.Option("--rerun-failures", help="Fetch only what failed in the run that filled this file.")
    ] = False
    force_rerun_all: Annotated[
        bool, typer.Option("--force-rerun-all", help="Fetch everything again, whatever the cache has.")
    ] = False
    as_add_in: Annotated[
        bool, typer.Option("--as-add-in", help="Formulas: the add-in's own values, with its known faults and texts.")
    ] = False
    values: Annotated[
        bool, typer.Option("--values", help="Formulas: replace those with such functions by their values.")
    ] = False
    refresh_login: Annotated[
        bool, typer.Option("--refresh-login", help="Formulas: log in again; a login lasts 24 hours.")
    ] = False
    libreoffice: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Formulas: LibreOffice, if not on PATH; calculates what depends on them."),
    ] = None
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False

    @property
    def fills_formulas(self) -> bool:
        """Whether formulas are filled, instead of columns."""
        return self.columns is None and self.template is None

    @property
    def refresh(self) -> Refresh:
        """What is fetched although the cache has it."""
        if self.force_rerun_all:
            return "everything"
        return "failures" if self.rerun_failures else "nothing"

    @property
    def named(self) -> Mapping[str, str]:
        """Columns that are named, by v3's keys."""
        given = (
            *(("mpn", self.mpn_column), ("brand", self.manufacturer_column), ("sku", self.sku_column)),
            ("quantity", self.quantity_column),
        )
        return {key: name for key, name in given if name is not None}


class FillRun:
    """One run. Its files are decided first: what could not be written must not be paid for."""

    def __init__(self, options: FillOptions, clock: Clock) -> None:
        self.options = options
        self.clock = clock
        self.target = options.file if options.in_place else options.output or fill.copy_path(options.file)
        self.records = records.FillRecords(options.file)
        self._offers: Path | None = None  # file of offers beside the target
        self._columns: ColumnSet | None = None
        self._login: LoginSession | None = None  # of the formulas of a workbook

    async def run(self) -> int:
        """Run to the end; return the exit code."""
        from proxy.sheet.package import workbook

        self._check_folder()
        if not self.options.in_place:
            self._check_target()
        opened_job = self._opened_formulas if self.options.fills_formulas else self._opened_columns
        with opened_job() as job:
            if self.options.file.suffix.lower() in WITH_FORMULAS and workbook.is_signed(self.options.file):
                spending.say("note: the workbook's digital signature is not valid after the change: sign it again")
            async with self._opened_source() as (source, free):
                return await self._filled(job, source, free=free)

    def _check_folder(self) -> None:
        folder = Path(os.path.realpath(self.target)).parent
        if not os.access(folder, os.W_OK):
            raise errors.SheetError(f"{self.target}: cannot be written: the folder {folder} is missing or not writable")

    def _check_target(self) -> None:
        """Refuse to overwrite what is not the output of an earlier run."""
        if self.target.exists() and self.options.file.exists() and self.target.samefile(self.options.file):
            raise typer.BadParameter("is the file itself: use --in-place", param_hint="--output")
        if self.target.suffix.lower() != self.options.file.suffix.lower():
            raise typer.BadParameter(f"must end with {self.options.file.suffix}, as the file", param_hint="--output")
        records.FillRecords(self.target).check_unchanged()

    @contextmanager
    def _opened_formulas(self) -> Iterator[fill.FillJob]:
        """Open the file, and find its formulas."""
        from proxy.sheet.formulas import opening
        from proxy.sheet.formulas.job import FormulaOptions

        options = self.options
        formulas = FormulaOptions(
            as_add_in=options.as_add_in,
            values=options.values,
            rerun_failures=options.rerun_failures,
            login_optional=options.api_key is not None,
            now=self.clock.now(),
        )
        with opening.opened(options.file, formulas, options.libreoffice, self.records.fetched) as job:
            self._login = opening.LoginSession(options.file, job, self.clock.now(), refresh=options.refresh_login)
            yield job

    @contextmanager
    def _opened_columns(self) -> Iterator[fill.FillJob]:
        """Open the file, and find out what is to be filled."""
        from proxy.sheet.columns import csv_table, job, tables

        options = self.options
        columns = self._columns = _columns(options)
        with tables.opened(options.file, options.sheet, options.named) as table:
            if isinstance(table, csv_table.CsvTable):
                self._offers = csv_table.offers_file(self.target)
                records.FillRecords(self._offers).check_unchanged()
            yield job.ColumnsJob(
                table,
                columns,
                named=options.named,
                now=self.clock.now(),
                rerun_failures=options.rerun_failures,
                fetched_before=self.records.fetched,
            )

    @asynccontextmanager
    async def _opened_source(self) -> AsyncIterator[tuple[PartSource, bool]]:
        """Open the source of parts, and tell whether its parts are free."""
        from proxy.sheet import sources

        settings = loader.load(self.options.config or shipped.path("config.yaml"), os.environ)
        key = option_fields.read_key(self.options.api_key, "--api-key")
        apikey, login, location = None if key is None else key.reveal(), None, None
        free = settings.upstream == "sandbox"
        if self._login is not None and apikey is None:
            if free:
                spending.say("note: the workbook's login is not used: the sandbox has an application of its own")
            else:
                apikey, login = self._login.credentials()
        async with AsyncExitStack() as stack:
            if free:
                sandbox = embedded.endless_sandbox(embedded.add_in_sample())
                settings, _ = await embedded.with_sandbox(settings, stack, sandbox)
                location = sources.sandbox_cache(embedded.sandbox_edition())
            opened = sources.open_source(
                settings,
                self.clock,
                apikey=apikey,
                login=login,
                refresh_login=self.options.refresh_login,
                cache_location=location,
            )
            source = await stack.enter_async_context(opened)
            empty = None if self._columns is None else self._columns.note_without(source.view.projection.features)
            for note in filter(None, (*source.notes, empty)):
                spending.say(f"note: {note}")
            yield source, free

    async def _filled(self, job: fill.FillJob, source: PartSource, *, free: bool) -> int:
        options = self.options
        cost = await source.estimate(job.queries, refresh=options.refresh)
        _print_plan(job, cost, options, free=free)
        if options.dry_run:
            return FILLED
        # Nothing has been sent so far: declining costs nothing.
        most = cost.parts + job.later_queries
        if not spending.confirm_cost(most, options.budget, 0, yes=options.yes, free=free):
            return NOT_FILLED
        end = await self._fetched(job, source)
        if self._login is not None and not free and options.api_key is None:
            self._login.end(refused=end.refused, used=source.upstream_requests > 0)
        backup = self._back_up()
        counts = job.write(self.target)
        self.records.save(self.target, self._offers)
        _print_end(end, options)
        figures = {f"{job.unit}s": job.lines, **counts, "parts spent": end.parts, "from cache": cost.cached}
        figures["upstream requests"] = source.upstream_requests
        files = {"output": self.target, "offers": self._offers, "backup": backup}
        _print_problems(job.problems)
        _print_summary(files, figures, job.problems, end, as_json=options.json)
        complete = end.stopped is None and not any(counts[name] for name in counts.keys() - set(COMPLETE))
        return FILLED if complete else INCOMPLETE

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

    def _back_up(self) -> Path | None:
        """Copy the file before it is changed itself."""
        from proxy.sheet.package import saving

        return saving.back_up(self.options.file) if self.options.in_place else None


async def _announce(stop: asyncio.Event) -> None:
    """Say why the run does not end at once after a signal."""
    await stop.wait()
    spending.say("stopping: requests in flight are paid for, and waited for; a second Ctrl-C ends at once")


def run(options: FillOptions) -> int:
    """Run; return the exit code. A run that a second signal cancels writes nothing."""
    from proxy.telemetry import log

    _check(options)
    log.configure("error", "console", sys.stderr)
    try:
        return event_loop.run(FillRun(options, SystemClock()).run())
    except SystemExit:
        return NOT_FILLED


def _check(options: FillOptions) -> None:
    """Refuse options that contradict each other."""
    if options.fills_formulas and options.file.suffix.lower() not in WITH_FORMULAS:
        raise typer.BadParameter("is missing: name columns, or a --template of them", param_hint="--columns")
    for name in ONLY_COLUMNS if options.fills_formulas else ONLY_FORMULAS:
        if getattr(options, name):
            other = (
                "is for columns: add --columns" if options.fills_formulas else "is for formulas: leave out --columns"
            )
            raise typer.BadParameter(other, param_hint=_option(name))
    for names in (("columns", "template"), ("output", "in_place"), ("rerun_failures", "force_rerun_all")):
        if all(getattr(options, name) for name in names):
            first, second = map(_option, names)
            raise typer.BadParameter(f"cannot be combined with {second}", param_hint=first)


def _option(field: str) -> str:
    return f"--{field.replace('_', '-')}"


def _columns(options: FillOptions) -> "ColumnSet":
    """Return the columns; options take precedence over those of a template."""
    from proxy.sheet.columns import specs

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
    return columns._replace(rules=rules, currency=currency)


def _print_plan(job: fill.FillJob, cost: CostEstimate, options: FillOptions, *, free: bool) -> None:
    queries = counted(cost.queries, "distinct query", "distinct queries")
    cached = "the cache is ignored" if options.force_rerun_all else f"{cost.cached} in the cache"
    if job.later_queries:
        cached += f"; {counted(job.later_queries, 'query', 'queries')} more at most, which need results of these"
    spending.say(f"{options.file.name}: {counted(job.lines, job.unit)}, {queries}, {cached}")
    limit = "" if options.budget is None else f"; budget {counted(options.budget, 'part')}"
    price = "free of charge" if free else f"{counted(cost.parts + job.later_queries, 'part')} at most{limit}"
    spending.say(f"to fetch: {counted(cost.upstream_requests, 'upstream request')}, {price}")


def _print_end(end: fill.FillEnd, options: FillOptions) -> None:
    if end.stopped is not None:
        again = "without --force-rerun-all" if options.force_rerun_all else "the same command again"
        spending.say(f"stopped: {end.stopped}")
        spending.say(f"what was fetched is kept: run {again} to continue, without paying for it twice")


def _print_problems(problems: Sequence[str]) -> None:
    for problem in problems[:PROBLEMS_MAX]:
        spending.say(f"not filled: {problem}")
    if len(problems) > PROBLEMS_MAX:
        spending.say(f"not filled: {len(problems) - PROBLEMS_MAX} more; --json lists all")


def _print_summary(
    files: Mapping[str, Path | None],
    figures: Mapping[str, int],
    problems: Sequence[str],
    end: fill.FillEnd,
    *,
    as_json: bool,
) -> None:
    if as_json:
        summary = {name.replace(" ", "_"): number for name, number in figures.items()}
        paths = {name: str(path) for name, path in files.items() if path}
        document = summary | paths | {"stopped": end.stopped, "problems": problems}
        typer.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, number in figures.items():
        table.add_row(Text(name), Text(f"{number:,}"))
    for name, path in files.items():
        if path is not None:
            table.add_row(Text(name), Text(printable(str(path))))
    Console(soft_wrap=True, highlight=False).print(table)
