"""One run of `sheet fill`: what was recognized and the cost first, then fetching, writing and the summary."""

import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from proxy import cli, errors, log
from proxy.cli import commands
from proxy.config import loader
from proxy.kit import counted, shipped
from proxy.kit.clock import Clock
from proxy.tools import running
from proxy.tools.sheet import columns, decisions, fetching, files, lines, summary
from proxy.tools.sheet.csv_file import NEW_FILE, CsvFile
from proxy.tools.sheet.fetching import Job
from proxy.tools.sheet.formula_job import ApplicationLogin, FormulaJob
from proxy.tools.sheet.list_job import ListJob, Wanted
from proxy.tools.sheet.options import FillOptions
from proxy.tools.sheet.source import PartSource
from proxy.tools.sheet.workbook import WorkbookFile

DONE, INCOMPLETE, NOT_RUN, NOTHING_USABLE = 0, 1, 2, 3  # exit codes

STOPPING = "stopping: requests in flight are paid for, and waited for; a second Ctrl-C ends at once"
ADD_IN_SAMPLE = "add_in_sample.jsonl"  # the parts of the add-in's official sample workbook

Table = CsvFile | WorkbookFile


def run(options: FillOptions) -> int:
    """Run; return the exit code. A run that a second signal cancels writes nothing."""
    options.check()
    log.configure("error", "console", sys.stderr)
    try:
        return running.run(_run(options))
    except SystemExit:
        return NOT_RUN


def _exit_code(counts: Mapping[str, int]) -> int:
    """Return the exit code for so many lines or cells of each outcome."""
    complete = sum(counts.get(name, 0) for name in decisions.COMPLETE)
    if complete and complete == sum(counts.values()):
        return DONE
    return INCOMPLETE if complete or any(counts.get(name, 0) for name in decisions.DOUBTFUL) else NOTHING_USABLE


async def _run(options: FillOptions) -> int:
    """Run; return the exit code."""
    clock, wanted = Clock(), options.wanted()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="v3bridge-")))
        table, job, digest = _opened(options, wanted, folder)
        source, login, free = await _source(options, job, stack, clock)
        await check_names(source, job, wanted)
        summary.say_opened(options, table, job)
        empty = columns.note_without(wanted.specs, source.client.application.features)
        summary.say_some("note", [*(() if free else source.notes), *filter(None, (empty,))])
        cost = await source.estimate(job.needed(), anew=options.force_rerun_all)
        if not options.force_rerun_all:
            await fetching.add_stored(job, source)
        summary.say_cost(options, job, cost, free=free)
        if options.budget == 0:
            return DONE
        # Nothing has been sent so far: declining costs nothing.
        if not running.confirm_cost(job.worst_case, options.budget, yes=options.yes, free=free):
            return NOT_RUN
        with running.progress_bar("filling", len(job.needed())) as update:
            end = await fetching.fetch(
                job,
                source,
                running.stop_on_signal(partial(commands.say, STOPPING)),
                budget=options.budget,
                anew=options.force_rerun_all,
                tell=lambda results: update(results, counted(source.parts_spent, "part")),
            )
        if isinstance(job, FormulaJob) and login is not None:
            job.is_refused = end.refused
            if not end.refused and (options.refresh_login or source.upstream_requests):
                # A login lasts from its first success on, unless it is renewed.
                with files.state() as known:
                    key, now = files.digest(login.client_id.encode()), clock.now()
                    known.logins[key] = now if options.refresh_login else known.logins.get(key, now)
        written = _written(options, table, job, digest)
        summary.show(options, job, source, written, end, stored=cost.stored)
        if isinstance(table, WorkbookFile) and table.content.formulas:
            commands.say("note: the copy's other formulas show values when a spreadsheet program opens it")
        return _exit_code(job.outcomes)


def _opened(options: FillOptions, wanted: Wanted, folder: Path) -> tuple[Table, Job, str]:
    """Return the file, what is done with it, and its digest; `folder` is for a copy. Raises SheetError."""
    data = files.read(options.file)
    table = WorkbookFile(options.file, data, folder) if options.is_workbook else CsvFile(options.file, data)
    job: Job
    if isinstance(table, CsvFile) or options.columns is not None:
        job = list_job(options, wanted, table)
    else:
        content = table.read()
        if not content.calls:
            why = content.problems[0] if content.problems else "no formula has a function of the add-in"
            raise errors.SheetError(f"{table.path}: {why}; to add columns to a parts list, use --columns")
        is_optional = options.api_key is not None
        job = FormulaJob(str(table.path), content.calls, content.problems, login_optional=is_optional)
    # Before anything is spent.
    beside = Path(os.path.realpath(options.file)).parent
    if not os.access(beside, os.W_OK):
        why = f"nothing can be written beside it: the folder {beside} is not writable"
        raise errors.SheetError(f"{options.file}: {why}")
    return table, job, files.digest(data)


def list_job(options: FillOptions, wanted: Wanted, table: Table) -> ListJob:
    """Return the job that adds columns to a list. Raises SheetError."""
    reading, sheet = options.reading()
    if isinstance(table, CsvFile):
        found = lines.read(table.rows(), reading, str(table.path), is_csv=True)
    else:
        content = table.read(sheet, reading)
        others = "".join(f" ({each}; --read sheet=NAME reads one)" for each in summary.other_sheets(table))
        found = lines.read(content.rows, reading, f"{table.path}, sheet {content.sheet!r}{others}", is_csv=False)
    return ListJob(found, wanted, reading.boards or 1)


async def _source(
    options: FillOptions, job: Job, stack: AsyncExitStack, clock: Clock
) -> tuple[PartSource, ApplicationLogin | None, bool]:
    settings = loader.load(options.config or shipped("config.yaml"), os.environ)
    key = running.read_key(options.api_key, "--api-key")
    apikey: str | None = None if key is None else key.reveal()
    login: ApplicationLogin | None = None
    free = settings.upstream == "sandbox"
    if isinstance(job, FormulaJob) and apikey is None:
        if free:
            commands.say("note: the workbook's login is not used: the sandbox has an application of its own")
        else:
            login = job.login(clock.now(), refresh=options.refresh_login)
    if free:
        sandbox = running.endless_sandbox(ADD_IN_SAMPLE)
        settings, _ = await cli.with_sandbox(settings, stack, sandbox)
    opened = fetching.open_source(settings, clock, apikey=apikey, login=login, refresh_login=options.refresh_login)
    return await stack.enter_async_context(opened), login, free


async def check_names(source: PartSource, job: Job, wanted: Wanted) -> None:
    """Refuse specs and distributors that nobody knows: what asks for them alone would be paid for, and stay empty."""
    named = {*wanted.rules.distributors, *(spec.distributor for spec in wanted.specs if spec.distributor)}
    specs = {spec.spec for spec in wanted.specs if spec.spec is not None}
    try:
        sellers, unknown = await source.unknown(job.distributors if isinstance(job, FormulaJob) else named, specs)
    except errors.BridgeError as error:
        commands.say(f"note: names of distributors and specs could not be checked: {error.message}")
        return
    if isinstance(job, FormulaJob):
        summary.say_some("note", [f"{seller}: formulas that name no other have no value" for seller in sellers])
    elif sellers or unknown:
        raise errors.ConfigError([*unknown, *sellers][0])


def _written(options: FillOptions, table: Table, job: Job, digest: str) -> dict[str, Path]:
    """Write the filled file, and that of the offers; return their paths."""
    path, in_place, written = options.file, options.in_place, dict[str, Path]()
    if isinstance(table, WorkbookFile) and (table.lost or table.content.formulas):
        in_place = False
    if isinstance(job, FormulaJob):
        assert isinstance(table, WorkbookFile)  # noqa: S101 - only workbooks have formulas
        save = partial(table.save, cells=job.cells())
    else:
        save = partial(table.save_list, filled=job.fill())
    lacking = sum(job.outcomes.get(name, 0) for name in decisions.UNFINISHED)
    output, backup = files.write(
        path, save, "filled", path.suffix, lacking=lacking, in_place=digest if in_place else None
    )
    if backup is not None:
        written["backup"] = backup
    if in_place and output != path:
        commands.say(f"{path}: was changed during the run, and stays as it is; the result is in {output}")
    elif backup is not None and not in_place:
        commands.say(f"note: an earlier run filled more lines; its copy is {backup} now")
    written["output"] = output
    if isinstance(job, ListJob) and options.offers != "none":
        manner = table if isinstance(table, CsvFile) else CsvFile(path, NEW_FILE)
        save_rows = partial(manner.save_rows, rows=job.offer_rows())
        written["offers"], backup = files.write(path, save_rows, "offers", ".csv", lacking=lacking)
        written |= {"offers_backup": backup} if backup is not None else {}
    return written
