"""What a run says: what was recognized, the cost, and the summary."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from proxy.cli import commands
from proxy.kit import counted
from proxy.tools.sheet import cell_texts
from proxy.tools.sheet.csv_file import CsvFile
from proxy.tools.sheet.fetching import FetchEnd, Job
from proxy.tools.sheet.headings import ROLES
from proxy.tools.sheet.lines import PartsList, column_name
from proxy.tools.sheet.list_job import ListJob
from proxy.tools.sheet.options import FillOptions
from proxy.tools.sheet.source import CostEstimate, PartSource
from proxy.tools.sheet.workbook import WorkbookFile

SHOWN_MAX = 20  # lines of one kind of message


def say_opened(options: FillOptions, table: CsvFile | WorkbookFile, job: Job) -> None:
    """Say what was recognized, and what a copy of the file lacks."""
    if isinstance(job, ListJob):
        found, roles, places = job.found, job.found.columns.roles, job.found.columns.places
        sheet = f" of sheet {table.content.sheet!r}" if isinstance(table, WorkbookFile) else ""
        commands.say(f"headings: row {found.header_row}{sheet}")
        names = [f"{column_name(at)} {text[: cell_texts.SHOWN_MAX]!r}" for at, text in enumerate(found.headings)]
        counted_so = "designators are counted" if "designator" in places else "1 is taken"
        without = {"manufacturer": "any is taken", "quantity": counted_so}
        for role in ROLES.values():
            used = ", ".join(names[at] for at, name in sorted(roles.items()) if name == role)
            if used or role in without:
                commands.say(f"  {role}: {used or f'no column, {without[role]}; --read {role}=NAME names one'}")
        unused = [text for at, text in enumerate(names) if at not in roles and found.headings[at]]
        if unused:
            commands.say(f"  not used: {', '.join(unused[:SHOWN_MAX])}")
        say_some("note", [f"{each}; --read sheet=NAME reads one" for each in other_sheets(table)])
        if found.columns.from_values:
            commands.say("note: no column of part numbers: values are taken for them; --read mpn=NAME names another")
        say_some("left out", left_out(found))
    say_some("not understood" if isinstance(job, ListJob) else "left as it is", job.problems)
    if isinstance(table, WorkbookFile) and (table.lost or (options.in_place and table.content.formulas)):
        lost = [*table.lost, *(["the values of formulas"] if table.content.formulas else [])]
        beside = ", so that the file is not filled in place" if options.in_place else ""
        commands.say(f"note: a copy lacks or changes {', '.join(lost)}{beside}")


def other_sheets(table: CsvFile | WorkbookFile) -> list[str]:
    """Return which sheets have part numbers, and are not read; empty if there is none."""
    others = table.content.others[:SHOWN_MAX] if isinstance(table, WorkbookFile) else []
    return [f"other sheets with part numbers: {', '.join(map(repr, others))}"] if others else []


def left_out(found: PartsList) -> list[str]:
    """Return why rows are left out, and which."""
    reasons: dict[str, list[str]] = {}
    for each in found.left_out:
        reasons.setdefault(each.reason, []).append(str(each.row))
    rows = {why: ", ".join(own[:SHOWN_MAX]) + (" …" if len(own) > SHOWN_MAX else "") for why, own in reasons.items()}
    return [f"row{'s' if len(reasons[why]) > 1 else ''} {shown}: {why}" for why, shown in rows.items()]


def outcome(job: Job) -> str:
    return ", ".join(f"{number:,} {outcome}" for outcome, number in job.outcomes.items() if number) or "nothing to fill"


def say_some(label: str, messages: Sequence[str]) -> None:
    for message in messages[:SHOWN_MAX]:
        commands.say(f"{label}: {message}")
    if len(messages) > SHOWN_MAX:
        commands.say(f"{label}: {len(messages) - SHOWN_MAX} more; --json lists all")


def say_cost(options: FillOptions, job: Job, cost: CostEstimate, *, free: bool) -> None:
    """Say what a run may cost, and what it will cost if each line has one part."""
    most = job.worst_case
    queries = counted(cost.queries, "distinct query", "distinct queries")
    cached = "the cache is ignored" if options.force_rerun_all else f"{cost.stored} in the cache"
    commands.say(f"{options.file.name}: {counted(job.lines, job.unit)}, {queries}, {cached}")
    limit = "" if options.budget is None else f"; budget {counted(options.budget, 'part')}"
    if cost.left is not None and cost.left < (most if options.budget is None else min(most, options.budget)):
        limit += f"; the quota has {counted(cost.left, 'part')} left"
    parts = f"{counted(cost.parts_if_one, 'part')} if each {job.unit} has one part, {most:,} at most{limit}"
    commands.say(f"to fetch: {counted(cost.upstream_requests, 'upstream request')}, {parts}")
    if free:
        commands.say("note: these parts are the embedded sandbox's, and free; --config FILE fetches real ones")
    if options.budget == 0:
        commands.say("with --budget 0 nothing is fetched or written")
        if options.json:
            commands.print_json(cost._asdict() | {f"{job.unit}s": job.lines, "parts_at_most": most})


def show(
    options: FillOptions, job: Job, source: PartSource, written: Mapping[str, Path], end: FetchEnd, *, stored: int
) -> None:
    """Say how to continue after an early end: without a store, results are in the filled file only. Print the summary:
    the result first, then what to check, the totals, what it cost, and the files. `stored`: queries from the cache."""
    if end.stopped is not None:
        commands.say(f"stopped: {end.stopped}")
        if end.refused and not end.results and options.config is not None:
            commands.say(f"nothing was fetched: v3bridge doctor --config {options.config} says what to correct")
        elif not source.notes:
            again = "without --force-rerun-all" if options.force_rerun_all else "the same command again"
            if end.needed > (options.budget or 0):
                again += f" with --budget {end.needed} or more"
            commands.say(f"what was fetched is kept: run {again} to continue, without paying for it twice")
        else:
            commands.say(f"what was fetched is in {written['output']} only")
    more: dict[str, object] = {"stopped": end.stopped, "reasons": job.reasons, "problems": job.problems}
    if isinstance(job, ListJob):
        say_some("note", job.notes)
        say_some("changed", job.changed)
        more |= {"changed": job.changed, "rows_left_out": job.left_out, "totals": job.totals()}
    spent, requests = source.parts_spent, source.upstream_requests
    if options.json:
        files = {name: str(path) for name, path in written.items()}
        keys = {f"{job.unit}s": job.lines, "parts_spent": spent, "from_cache": stored, "upstream_requests": requests}
        commands.print_json(keys | {outcome.replace(" ", "_"): n for outcome, n in job.outcomes.items()} | files | more)
        return
    reasons = sorted(job.reasons.items(), key=lambda each: -each[1])
    lines: list[commands.Line] = [f"{counted(job.lines, job.unit)}: {outcome(job)}"]
    lines += [f"  {number:,} × {reason}" for reason, number in reasons[:SHOWN_MAX]]
    if len(reasons) > SHOWN_MAX:
        lines.append(f"  {len(reasons) - SHOWN_MAX} more reasons; --json lists all")
    if isinstance(job, ListJob) and any(each.total for each in job.totals()):
        columns: dict[str, commands.Column] = {"distributor": "distributor", "lines": "lines"}
        lines += ["", commands.table(job.totals(), columns | {f"total {job.currency}": "total"}), ""]
    cost = f"{counted(spent, 'part')} spent in {counted(requests, 'upstream request')}"
    lines.append(f"{cost}, {stored:,} from the cache")
    lines += [f"{name.replace('_', ' ')}: {path}" for name, path in written.items()]
    commands.print_lines(lines)
