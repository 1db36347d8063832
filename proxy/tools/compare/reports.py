"""Reports of a comparison, in the words of words.py: on the terminal, and as one self-contained page without a script.

On the terminal the verdict is first, the next steps are last, and the most important findings in between. In the page
jinja2 escapes all data; as a second line of defense, a Content-Security-Policy permits only the page's own style, by
its hash.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import jinja2
from markupsafe import Markup
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from proxy import kit
from proxy.cli import commands
from proxy.tools.compare import words
from proxy.tools.compare.judging.result import ComparisonResult

FOLDER = Path(__file__).parent / "page"
COLORS = {"ready": "green", "not ready": "red", "inconclusive": "yellow"}
LINES = 12  # entries per list; further ones are only counted
GROUPS = 15  # the other reports have all of them
FURTHER = "… and {} more: --html and --json have all of them"
ROWS: dict[str, commands.Column] = {
    **{"endpoint": "endpoint", "equivalent": "equivalent", "compared": "requests", "in source": "occurrences"},
    "not compared": "not_compared",
    "verdict": lambda row: Text(row.verdict, style=COLORS[row.verdict]),
}
RULES: dict[str, commands.Column] = {
    "rule": lambda rule: words.line(rule.name),
    "effect": lambda rule: Text(words.used(rule), style="red" if rule.expired else "" if rule.ignored else "yellow"),
    "until": lambda rule: words.line(rule.expires or "–"),
    "reason": lambda rule: words.line(rule.reason),
}


def render_html(result: ComparisonResult) -> str:
    """Render the page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(words=words, pair=words.pair, counted=kit.counted, moment=kit.rfc3339)
    environment.filters.update(line=words.line)
    style = (FOLDER / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment.get_template("page.html.j2").render(
        result=result,
        style=Markup(style),  # noqa: S704 - the page's own file, which holds no data
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        took=kit.duration(max(0.0, result.ended - result.started)),
    )


def render_terminal(result: ComparisonResult, console: Console) -> None:
    """Print the report. Markup and control characters in client data are escaped."""
    verdict, _, reason = words.headline(result).partition(": ")
    console.print(Text.assemble((f"{verdict}: ", f"bold {COLORS[result.verdict]}"), reason))
    sides = f"{words.line(result.baseline)} against {words.line(result.candidate)}, from {words.line(result.source)}"
    took = kit.duration(max(0.0, result.ended - result.started))
    console.print(Text(f"{sides}, {kit.rfc3339(result.started)}, in {took}", style="dim"))
    failures = (
        Text.assemble(
            (kit.counted(each.requests, "request"), "yellow"),
            f": {words.line(each.reason)}",
            (f" (first at {words.line(each.first_origin)})", "dim"),
        )
        for each in result.failures
    )
    sections: tuple[tuple[str, Iterable[RenderableType]], ...] = (
        ("Could not be compared", _lines(failures)),
        ("Endpoints", [commands.table(result.rows, ROWS)] if result.rows else []),
        ("Differences", _groups(result)),
        ("Rules", [commands.table(result.rules, RULES)] if result.rules else []),
        ("Cost", [Text(words.cost(result))]),
        ("API keys without a name in the settings", _lines(Text(words.key(key)) for key in result.keys)),
        ("Notes", _lines(Text(words.line(note, 1000)) for note in result.notes)),
        ("Next steps", [Text(f"{place}. {step}") for place, step in enumerate(words.next_steps(result), 1)]),
    )
    for title, parts in sections:
        heading: list[RenderableType] = [Text(), Text(title, style="bold")]
        for part in parts:
            for each in (*heading, part):
                console.print(each)
            heading = []


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
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        table.add_row("path", Text(words.line(group.path), style="cyan"))
        table.add_row("cause", Text.assemble((group.cause, "bold"), f": {words.line(group.why)}"))
        table.add_row("clients", Text(words.line(", ".join(group.clients))))
        for sample in group.samples[:1]:
            table.add_row("request", Text(words.line(sample.request)))
            table.add_row("place", Text(words.line(f"{sample.place}, {sample.origin}")))
            pair = zip(("baseline", "candidate"), words.pair(sample.baseline, sample.candidate), strict=True)
            for (name, side), style in zip(pair, ("bold red", "bold green"), strict=True):
                parts = (side.before, (side.differing, style), side.after) if side else (("nothing", "dim italic"),)
                table.add_row(name, Text.assemble(*parts))
            if sample.message:
                table.add_row("message", Text(words.line(sample.message)))
        yield Padding(table, (0, 0, 1, 4), expand=False)
    if len(counting) > GROUPS:
        yield Text(FURTHER.format(len(counting) - GROUPS), style="dim")
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
        if len(others) > GROUPS:
            yield Text(FURTHER.format(len(others) - GROUPS), style="dim")
