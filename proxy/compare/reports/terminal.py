"""The report that a terminal shows: the verdict first, what to do next last, and what counts most in between."""

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from proxy.compare.reports import advice, ordering, terminal_groups, visible, words
from proxy.compare.result import Result, Row

COLOURS = {"ready": "green", "not ready": "red", "inconclusive": "yellow"}
WIDE = 104  # columns of a terminal that the whole table fits into
LINES = 12  # of a list; the rest is counted


def render(result: Result, console: Console) -> None:
    """Print it. Nothing in the data is read as markup, and none of its control characters gets through."""
    _verdict(result, console)
    if result.rows:
        _section(console, "Clients and endpoints", [_rows(result, console.width >= WIDE)])
    _section(console, "Differences", terminal_groups.shown(result))
    _section(console, "Rules", _rules(result))
    _section(console, "Cost", [Text(f"{line[0].upper()}{line[1:]}.") for line in _costs(result)])
    _section(console, "Could not be compared", _lines(_troubles(result)))
    _section(console, "Keys that no setting names", _lines(Text(words.key(key)) for key in result.keys))
    _section(console, "Notes", _lines(Text(visible.line(note)) for note in result.notes))
    _section(console, "What to do next", _steps(result))


def _verdict(result: Result, console: Console) -> None:
    verdict = f"{words.VERDICTS[result.verdict]}: "
    console.print(Text.assemble((verdict, f"bold {COLOURS[result.verdict]}"), words.because(result)))
    old, new = (visible.line(side.place) for side in result.sides)
    when = f"{words.moment(result.started)}, in {words.took(result)}"
    about = f"{old} against {new}, from {visible.line(result.source)}, {when}"
    console.print(Text(about, style="dim"))
    for failed in result.failed:
        console.print(Text(f"✗ {visible.line(failed)}", style="red"))


def _section(console: Console, title: str, parts: Iterable[Text | Table | Padding]) -> None:
    """Title and body; nothing where there is no body."""
    body = list(parts)
    if body:
        console.print()
        console.print(Text(title, style="bold"))
        for part in body:
            console.print(part)


def _rows(result: Result, wide: bool) -> Table:
    """What a narrow terminal has no room for says the rest of the report, too."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("client", overflow="fold")
    table.add_column("endpoint", overflow="fold")
    for name in ("equivalent", "95 % interval", "calls", *(("in source", "not compared") if wide else ())):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    before = None
    for row in ordering.rows(result):
        table.add_row("" if row.client == before else Text(visible.line(row.client)), *_cells(row, wide))
        before = row.client
    return table


def _cells(row: Row, wide: bool) -> Iterator[Text]:
    yield Text(visible.line(row.endpoint))
    yield Text("–" if row.share is None else words.share(row.share))
    yield Text("–" if row.interval is None else words.interval(row.interval))
    yield Text(words.number(row.calls))
    if wide:
        yield Text(words.number(row.asked))
        yield Text(words.number(row.troubled), style="yellow" if row.troubled else "dim")
    yield Text(row.verdict, style=COLOURS[row.verdict])


def _rules(result: Result) -> Iterator[Table]:
    if not result.rules:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("rule", "what it did", "until", "reason"):
        table.add_column(name, overflow="fold")
    for rule in ordering.rules(result):
        style = "red" if rule.expired else "" if rule.hidden else "yellow"
        rest = (Text(visible.line(text)) for text in (rule.expires or "–", rule.reason))
        table.add_row(Text(visible.line(rule.name)), Text(words.used(rule), style=style), *rest)
    yield table


def _costs(result: Result) -> tuple[str, str]:
    return words.spent(result.cost), words.a_month(result.cost)


def _troubles(result: Result) -> Iterator[Text]:
    for trouble in sorted(result.troubles, key=lambda each: -each.calls):
        calls, first = words.count(trouble.calls, "call"), visible.line(trouble.first_origin)
        yield Text.assemble((calls, "yellow"), f": {visible.line(trouble.reason)}", (f" (first at {first})", "dim"))


def _lines(texts: Iterable[Text]) -> list[Text | Table | Padding]:
    found = list(texts)
    more = [Text(f"… and {words.number(len(found) - LINES)} more", style="dim")] if len(found) > LINES else []
    return [*found[:LINES], *more]


def _steps(result: Result) -> Iterator[Table]:
    table = Table.grid(padding=(0, 1))
    for place, step in enumerate(advice.steps(result), 1):
        table.add_row(Text(f"{place}.", style="bold"), Text(step))
    yield table
