"""The process of a list of the page: a task on standard input, what it finds and does on standard output, a line of
JSON each. Its time and memory are bounded: a hostile file can only end it."""

import base64
import os
import pickle
import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import typer

from proxy import config, errors, log
from proxy.kit.clock import Clock
from proxy.tools import running
from proxy.tools.sheet import fetching, files, run, summary
from proxy.tools.sheet.csv_file import CsvFile
from proxy.tools.sheet.lines import NoNumbersError, column_name
from proxy.tools.sheet.options import FillOptions
from proxy.tools.sheet.page import Asked, Task
from proxy.tools.sheet.run import Table
from proxy.tools.sheet.workbook import WorkbookFile

CPU_SECONDS, NICE = 300, 10
MEMORY_MAX = 1 << 30  # bytes of address space
SHOWN_MAX = 200  # messages of one kind


def main() -> None:
    """Do the task, after everything that programs wait for."""
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    task: Task = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the service
    log.configure(task[0].log.level, task[0].log.format, sys.stderr)
    try:
        running.run(_do(*task))
    except (errors.BridgeError, typer.BadParameter) as error:
        _say(error=error.message)
    except ModuleNotFoundError as error:
        _say(error=f"workbooks cannot be read here: {error.name} is not installed; save the list as CSV")


def _say(**event: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
    sys.stdout.buffer.flush()


async def _do(settings: config.Config, apikey: str, asked: Asked, data: bytes) -> None:
    stop = running.stop_on_signal()
    file = Path(Path(asked.name.replace("\\", "/")).name or "list.csv")
    options = FillOptions(file=file, columns=asked.columns, boards=asked.boards, read=asked.read)
    wanted = options.wanted()
    table = WorkbookFile(file, data, Path.cwd()) if options.is_workbook else CsvFile(file, data)
    try:
        job = run.list_job(options, wanted, table)
    except NoNumbersError as error:
        _say(recognized=_recognized(table, error.row, error.headings, {}), notes=summary.other_sheets(table))
        raise errors.SheetError("no column has part numbers: choose yours below") from error
    found = job.found
    _say(recognized=_recognized(table, found.header_row, found.headings, found.columns.roles))
    left_out = [f"left out: {each}" for each in summary.left_out(found)]
    _say(notes=[*summary.other_sheets(table), *left_out, *found.problems[:SHOWN_MAX]])
    async with fetching.open_source(settings, Clock(), apikey=apikey) as source:
        await run.check_names(source, job, wanted)
        cost = await source.estimate(job.needed())
        await fetching.add_stored(job, source)
        _say(cost=cost._asdict() | {"lines": job.lines, "most": job.worst_case})
        if asked.budget is None:
            return
        queries = len(job.needed())
        end = await fetching.fetch(
            job,
            source,
            stop,
            budget=asked.budget,
            tell=lambda done: _say(progress={"done": done, "of": max(done, queries), "parts": source.parts_spent}),
        )
        target = Path(f"filled{file.suffix}")
        table.save_list(target, job.fill())
        amounts = [(each, "" if each.total is None else f"{each.total:,.2f}") for each in job.totals()]
        checks = [f"{number:,} × {reason}" for reason, number in job.reasons.most_common()]
        result: dict[str, Any] = {"name": f"{file.stem}.filled{file.suffix}"}
        result |= {"file": base64.b64encode(files.read(target)).decode()}
        result |= {"outcome": summary.outcome(job), "parts": source.parts_spent, "stopped": end.stopped}
        result |= {"currency": job.currency, "totals": [(one.distributor, one.lines, total) for one, total in amounts]}
        _say(result=result | {"changed": job.changed[:SHOWN_MAX], "reasons": checks + job.notes[:SHOWN_MAX]})


def _recognized(table: Table, row: int, headings: Sequence[str], roles: Mapping[int, str]) -> dict[str, Any]:
    """Return what a person is to confirm: the sheet, the row of the headings, and the role of each column."""
    sheets, sheet = (table.content.sheets, table.content.sheet) if isinstance(table, WorkbookFile) else ([], "")
    columns = [(column_name(at), heading, roles.get(at, "")) for at, heading in enumerate(headings) if heading]
    return {"sheets": sheets, "sheet": sheet, "header_row": row, "columns": columns}


if __name__ == "__main__":
    main()
