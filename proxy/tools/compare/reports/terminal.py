"""Terminal report: the verdict first, the next steps last, and the most important findings in between."""

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from proxy.cli import shown
from proxy.tools.compare.reports import advice, highlight, ordering, visible, words
from proxy.tools.compare.results import ComparisonResult, DifferenceGroup, DifferenceSample, EndpointResult

COLORS = {"ready": "green", "not ready": "red", "inconclusive": "yellow"}
WIDE = 104  # minimum terminal width for the full table, in columns
LINES = 12  # entries per list; further ones are only counted


def render(result: ComparisonResult, console: Console) -> None:
    """Print the report. Markup and control characters in client data are escaped."""
    _verdict(result, console)
    _section(console, "Could not be compared", _lines(_failures(result)))
    if result.rows:
        _section(console, "Clients and endpoints", [_rows(result, console.width >= WIDE)])
    _section(console, "Differences", _group_parts(result))
    _section(console, "Rules", _rules(result))
    costs = words.spent(result.cost), words.per_month(result.cost)
    _section(console, "Cost", [Text(f"{line[0].upper()}{line[1:]}.") for line in costs])
    _section(console, "API keys without a name in the settings", _lines(Text(words.key(key)) for key in result.keys))
    _section(console, "Notes", _lines(Text(visible.line(note)) for note in result.notes))
    _section(console, "Next steps", _steps(result))


def _verdict(result: ComparisonResult, console: Console) -> None:
    verdict = f"{words.VERDICTS[result.verdict]}: "
    console.print(Text.assemble((verdict, f"bold {COLORS[result.verdict]}"), words.because(result)))
    baseline, candidate = (visible.line(side.place) for side in result.sides)
    when = f"{words.moment(result.started)}, in {words.took(result)}"
    about = f"{baseline} against {candidate}, from {visible.line(result.source)}, {when}"
    console.print(Text(about, style="dim"))
    for failed in result.failed:
        console.print(Text(f"✗ {visible.line(failed)}", style="red"))


def _section(console: Console, title: str, parts: Iterable[Text | Table | Padding]) -> None:
    """Print a title and its body; nothing for an empty body."""
    body = list(parts)
    if body:
        console.print()
        console.print(Text(title, style="bold"))
        for part in body:
            console.print(part)


def _rows(result: ComparisonResult, wide: bool) -> Table:
    """Build the table of rows. A narrow terminal gets fewer columns; their content is also in the rest of the
    report.
    """
    table = Table(box=None, pad_edge=False, header_style="dim")
    about = ("client", "endpoint")
    numbers = ("equivalent", "95 % interval", "requests", *(("in source", "not compared") if wide else ()))
    shown.add_columns(table, *about, *numbers, "verdict", right=numbers, fold=about)
    before = None
    for row in ordering.rows(result):
        table.add_row("" if row.client == before else Text(visible.line(row.client)), *_cells(row, wide))
        before = row.client
    return table


def _cells(row: EndpointResult, wide: bool) -> Iterator[Text]:
    yield Text(visible.line(row.endpoint))
    yield Text("–" if row.share is None else words.share(row.share))
    yield Text("–" if row.interval is None else words.interval(row.interval))
    yield Text(words.number(row.requests))
    if wide:
        yield Text(words.number(row.occurrences))
        yield Text(words.number(row.not_compared), style="yellow" if row.not_compared else "dim")
    yield Text(row.verdict, style=COLORS[row.verdict])


def _rules(result: ComparisonResult) -> Iterator[Table]:
    if not result.rules:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    columns = ("rule", "effect", "until", "reason")
    shown.add_columns(table, *columns, fold=columns)
    for rule in ordering.rules(result):
        style = "red" if rule.expired else "" if rule.ignored else "yellow"
        rest = (Text(visible.line(text)) for text in (rule.expires or "–", rule.reason))
        table.add_row(Text(visible.line(rule.name)), Text(words.used(rule), style=style), *rest)
    yield table


def _failures(result: ComparisonResult) -> Iterator[Text]:
    for failure in sorted(result.failures, key=lambda each: -each.requests):
        requests, first = words.count(failure.requests, "request"), visible.line(failure.first_origin)
        place = f" (first at {first})" if first else ""  # a live request has none
        yield Text.assemble((requests, "yellow"), f": {visible.line(failure.reason)}", (place, "dim"))


def _lines(texts: Iterable[Text]) -> list[Text | Table | Padding]:
    lines = list(texts)
    more = [Text(f"… and {words.number(len(lines) - LINES)} more", style="dim")] if len(lines) > LINES else []
    return [*lines[:LINES], *more]


def _steps(result: ComparisonResult) -> Iterator[Table]:
    table = Table.grid(padding=(0, 1))
    for place, step in enumerate(advice.next_steps(result), 1):
        table.add_row(Text(f"{place}.", style="bold"), Text(step))
    yield table


FULL, BRIEF = 15, 15  # maximum number of groups; the other reports have all of them
SAMPLE = 320  # characters per side


def _group_parts(result: ComparisonResult) -> Iterator[Text | Table | Padding]:
    """Yield the content of the section in order."""
    groups = ordering.groups(result)
    counting = [group for group in groups if group.counts]
    others = [group for group in groups if not group.counts]
    for place, group in enumerate(counting[:FULL], 1):
        yield _head(place, group, result)
        yield Padding(_body(group), (0, 0, 1 if place < len(counting) or others else 0, 4), expand=False)
    yield from _more(len(counting) - FULL)
    if others:
        yield Text("These do not count:", style="dim")
        yield _table(others[:BRIEF], result)
        yield from _more(len(others) - BRIEF)


def _head(place: int, group: DifferenceGroup, result: ComparisonResult) -> Text:
    return Text.assemble(
        (f"{place:>2}. ", "dim"),
        (words.KINDS[group.kind], "bold red"),
        f" on {words.seen_on(group, result)} of {visible.line(group.endpoint)}",
    )


def _body(group: DifferenceGroup) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("path", Text(visible.line(group.path), style="cyan"))
    table.add_row("cause", Text.assemble((group.cause, "bold"), f": {visible.line(group.why)}"))
    clients = ", ".join(map(visible.line, group.clients))
    table.add_row("clients", Text(visible.line(clients)))
    for sample in group.samples[:1]:
        _sample(table, sample)
    return table


def _sample(table: Table, sample: DifferenceSample) -> None:
    table.add_row("request", Text(visible.line(sample.request)))
    for curl in [sample.candidate_curl or sample.baseline_curl]:
        table.add_row("curl", Text(visible.line(curl)))
    table.add_row("place", Text(visible.line(f"{sample.place}, {sample.origin}")))
    pair = highlight.highlight_pair(sample.baseline, sample.candidate, SAMPLE)
    table.add_row("baseline", _side(pair.baseline, "bold red"))
    table.add_row("candidate", _side(pair.candidate, "bold green"))
    if sample.message:
        table.add_row("message", Text(visible.line(sample.message)))


def _side(side: highlight.HighlightedText | None, style: str) -> Text:
    if side is None:
        return Text("nothing", style="dim italic")
    text = Text("… " if side.before else "")
    for piece in side.pieces:
        text.append(visible.block(piece.text), style=style if piece.marked else "")
    if side.after:
        text.append(f" … ({words.count(side.after, 'character')} more)", style="dim")
    return text


def _table(groups: list[DifferenceGroup], result: ComparisonResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", style="dim")
    columns = ("endpoint", "path", "difference", "cause", "seen on", "why not")
    shown.add_columns(table, *columns, fold=columns)
    for group in groups:
        why_not = words.effect(group).partition(": ")[2]
        about = (group.endpoint, group.path, words.KINDS[group.kind], group.cause)
        table.add_row(*(Text(visible.line(cell)) for cell in (*about, words.seen_on(group, result), why_not)))
    return table


def _more(left: int) -> Iterator[Text]:
    if left > 0:
        yield Text(f"… and {words.number(left)} more: --html and --json have all of them", style="dim")
