"""Terminal report: the verdict first, the next steps last, and the most important findings in between."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from proxy.cli import commands
from proxy.kit import counted, duration, rfc3339
from proxy.tools.compare.judging.result import ComparisonResult, DifferenceGroup, EndpointResult, RuleUse
from proxy.tools.compare.reports import words

COLORS = {"ready": "green", "not ready": "red", "inconclusive": "yellow"}
LINES = 12  # entries per list; further ones are only counted
GROUPS = 15  # the other reports have all of them


def render(result: ComparisonResult, console: Console) -> None:
    """Print the report. Markup and control characters in client data are escaped."""
    verdict, _, reason = words.headline(result).partition(": ")
    console.print(Text.assemble((f"{verdict}: ", f"bold {COLORS[result.verdict]}"), reason))
    sides = f"{words.line(result.baseline)} against {words.line(result.candidate)}, from {words.line(result.source)}"
    took = duration(max(0.0, result.ended - result.started))
    console.print(Text(f"{sides}, {rfc3339(result.started)}, in {took}", style="dim"))
    _section(console, "Could not be compared", _lines(_failures(result)))
    if result.rows:
        _section(console, "Endpoints", [_rows(result.rows)])
    _section(console, "Differences", _groups(result))
    _section(console, "Rules", [_rules(result.rules)] if result.rules else [])
    _section(console, "Cost", [Text(words.cost(result))])
    _section(console, "API keys without a name in the settings", _lines(Text(words.key(key)) for key in result.keys))
    _section(console, "Notes", _lines(Text(words.line(note, 1000)) for note in result.notes))
    steps = [Text(f"{place}. {step}") for place, step in enumerate(words.next_steps(result), 1)]
    _section(console, "Next steps", steps)


def _section(console: Console, title: str, parts: Iterable[RenderableType]) -> None:
    """Print a title and its body; nothing for an empty body."""
    body = list(parts)
    if body:
        console.print()
        console.print(Text(title, style="bold"))
        for part in body:
            console.print(part)


def _rows(rows: Sequence[EndpointResult]) -> Table:
    columns: dict[str, commands.Column] = {
        **{"endpoint": "endpoint", "equivalent": "equivalent", "compared": "requests", "in source": "occurrences"},
        "not compared": "not_compared",
        "verdict": lambda row: Text(row.verdict, style=COLORS[row.verdict]),
    }
    return commands.table(rows, columns)


def _rules(rules: Sequence[RuleUse]) -> Table:
    columns: dict[str, commands.Column] = {
        "rule": lambda rule: words.line(rule.name),
        "effect": lambda rule: Text(
            words.used(rule), style="red" if rule.expired else "" if rule.ignored else "yellow"
        ),
        "until": lambda rule: words.line(rule.expires or "–"),
        "reason": lambda rule: words.line(rule.reason),
    }
    return commands.table(rules, columns)


def _failures(result: ComparisonResult) -> Iterator[Text]:
    for failure in result.failures:
        first = (f" (first at {words.line(failure.first_origin)})", "dim")
        yield Text.assemble((counted(failure.requests, "request"), "yellow"), f": {words.line(failure.reason)}", first)


def _lines(texts: Iterable[Text]) -> list[Text]:
    lines = list(texts)
    more = [Text(f"… and {len(lines) - LINES} more", style="dim")] if len(lines) > LINES else []
    return [*lines[:LINES], *more]


def _groups(result: ComparisonResult) -> Iterator[RenderableType]:
    """Yield the content of the section in order."""
    counting = [group for group in result.groups if group.counts]
    others = [group for group in result.groups if not group.counts]
    for place, group in enumerate(counting[:GROUPS], 1):
        where = f" on {words.seen_on(group, result)} of {words.line(group.endpoint)}"
        yield Text.assemble((f"{place:>2}. ", "dim"), (words.KINDS[group.kind], "bold red"), where)
        yield Padding(_body(group), (0, 0, 1, 4), expand=False)
    yield from _more(len(counting) - GROUPS)
    if others:
        yield Text("These do not count:", style="dim")
        columns: dict[str, commands.Column] = {
            "endpoint": lambda group: words.line(group.endpoint),
            "path": lambda group: words.line(group.path),
            "difference": lambda group: words.KINDS[group.kind],
            "cause": "cause",
            "seen on": lambda group: words.seen_on(group, result),
            "why not": lambda group: words.effect(group).partition(": ")[2],
        }
        yield commands.table(others[:GROUPS], columns)
        yield from _more(len(others) - GROUPS)


def _body(group: DifferenceGroup) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("path", Text(words.line(group.path), style="cyan"))
    table.add_row("cause", Text.assemble((group.cause, "bold"), f": {words.line(group.why)}"))
    table.add_row("clients", Text(words.line(", ".join(group.clients))))
    for sample in group.samples[:1]:
        table.add_row("request", Text(words.line(sample.request)))
        table.add_row("place", Text(words.line(f"{sample.place}, {sample.origin}")))
        baseline, candidate = words.pair(sample.baseline, sample.candidate)
        table.add_row("baseline", _side(baseline, "bold red"))
        table.add_row("candidate", _side(candidate, "bold green"))
        if sample.message:
            table.add_row("message", Text(words.line(sample.message)))
    return table


def _side(side: words.Marked | None, style: str) -> Text:
    if side is None:
        return Text("nothing", style="dim italic")
    return Text.assemble(side.before, (side.differing, style), side.after)


def _more(left: int) -> Iterator[Text]:
    if left > 0:
        yield Text(f"… and {left} more: --html and --json have all of them", style="dim")
