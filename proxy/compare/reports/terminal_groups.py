"""Groups of differences as a terminal shows them: those that count in full, the others in a table."""

from collections.abc import Iterator

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from proxy.compare.reports import highlight, ordering, visible, words
from proxy.compare.result import Group, Result, Sample

FULL, BRIEF = 15, 15  # groups that are shown; the other reports have all of them
SAMPLE = 320  # characters of a side


def shown(result: Result) -> Iterator[Text | Table | Padding]:
    """What is printed under the title, in order."""
    found = ordering.groups(result)
    counting = [group for group in found if group.counts]
    others = [group for group in found if not group.counts]
    for place, group in enumerate(counting[:FULL], 1):
        yield _head(place, group, result)
        yield Padding(_body(group), (0, 0, 1 if place < len(counting) or others else 0, 4), expand=False)
    yield from _more(len(counting) - FULL)
    if others:
        yield Text("These do not count:", style="dim")
        yield _table(others[:BRIEF], result)
        yield from _more(len(others) - BRIEF)


def _head(place: int, group: Group, result: Result) -> Text:
    return Text.assemble(
        (f"{place:>2}. ", "dim"),
        (words.KINDS[group.kind], "bold red"),
        f" on {words.seen_on(group, result)} of {visible.line(group.endpoint)}",
    )


def _body(group: Group) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("path", Text(visible.line(group.path), style="cyan"))
    table.add_row("cause", Text.assemble((group.cause, "bold"), f": {visible.line(group.why)}"))
    if group.noise is not None:
        table.add_row("noise", Text(words.noise(group)))
    clients = ", ".join(map(visible.line, group.clients))
    table.add_row("clients", Text(visible.line(clients)))
    for sample in group.samples[:1]:
        _sample(table, sample)
    return table


def _sample(table: Table, sample: Sample) -> None:
    table.add_row("call", Text(visible.line(sample.call)))
    table.add_row("place", Text(visible.line(f"{sample.place}, {sample.origin}")))
    pair = highlight.pair(sample.old, sample.new, SAMPLE)
    table.add_row("old", _side(pair.old, "bold red"))
    table.add_row("new", _side(pair.new, "bold green"))
    if sample.said:
        table.add_row("message", Text(visible.line(sample.said)))


def _side(side: highlight.Shown | None, style: str) -> Text:
    if side is None:
        return Text("nothing", style="dim italic")
    text = Text("… " if side.before else "")
    for piece in side.pieces:
        text.append(visible.block(piece.text), style=style if piece.marked else "")
    if side.after:
        text.append(f" … ({words.count(side.after, 'character')} more)", style="dim")
    return text


def _table(groups: list[Group], result: Result) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", style="dim")
    for name in ("endpoint", "path", "difference", "cause", "seen on", "why not"):
        table.add_column(name, overflow="fold")
    for group in groups:
        why_not = words.standing(group).partition(": ")[2]
        about = (group.endpoint, group.path, words.KINDS[group.kind], group.cause)
        table.add_row(*(Text(visible.line(cell)) for cell in (*about, words.seen_on(group, result), why_not)))
    return table


def _more(left: int) -> Iterator[Text]:
    if left > 0:
        yield Text(f"… and {words.number(left)} more: --html and --json have all of them", style="dim")
