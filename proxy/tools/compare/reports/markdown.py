"""Markdown report for a pull request: short enough for one comment.

Client data is escaped: it cannot be interpreted as Markdown or HTML, mention a user, or become a link.
"""

import re
from collections.abc import Iterable, Iterator

from proxy.tools.compare.reports import advice, highlight, ordering, visible, words
from proxy.tools.compare.results import ComparisonResult, DifferenceGroup, DifferenceSample

NAME, SENTENCE = 160, 240  # maximum characters of a name and of a sentence

_PLAIN = re.compile(r"[^`|\\\n<&]+")
_SPLIT = "\u200b"  # zero-width character that breaks mentions and automatic links without changing the displayed text
_SPECIAL = re.compile(rf":(?! )|_|[^\w: \u00a0{_SPLIT},.;()'\"%=?/+°–…-]")
_LINKS = re.compile(r"(?<=[@#])|(?<=:)(?=//)|(?<=www)|(?<=GH-)", re.IGNORECASE)


def code(text: str) -> str:
    """Format a name as code: between backticks if these can hold it, else as HTML with all characters as entities."""
    shown = visible.line(text, NAME)
    if _PLAIN.fullmatch(shown):
        return f"`{shown}`"
    return f"<code>{name(text)}</code>" if shown else "–"


def name(text: str) -> str:
    """Format a name for running text or an HTML element."""
    return _plain(visible.line(text, NAME))


def sentence(text: str) -> str:
    """Escape a sentence that may contain data."""
    return _plain(visible.line(text, SENTENCE))


def fenced(language: str, lines: list[str]) -> str:
    """Make a code block whose fence is longer than any run of backticks in it."""
    body = "\n".join(lines)
    fence = "`" * (1 + max(map(len, re.findall("`+", body)), default=2))
    return f"{fence}{language}\n{body}\n{fence}"


def _plain(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", _LINKS.sub(_SPLIT, text))


# Comments are limited to 65 536 characters; these are the shares of each table, each list, and all samples together.
TABLE, LIST, DETAILS = 10_000, 3_000, 12_000
SAMPLE = 500  # characters per side of a sample

_ICONS = {"ready": "🟢", "not ready": "🔴", "inconclusive": "🟡"}


def render(result: ComparisonResult) -> str:
    """Render the comment."""
    parts = [
        f"## {_ICONS[result.verdict]} v3 comparison\n\n**{sentence(words.headline(result))}**",
        _list(result.failed, "Failed:"),
        _list((f"{t.reason}: {words.count(t.requests, 'request')}" for t in result.failures), "Could not be compared:"),
        _rows(result),
        _groups(result),
        *_fitting((_details(group, result) for group in ordering.groups(result) if group.counts), DETAILS),
        _list(_rules(result), "Rules:"),
        _list((words.spent(result.cost), words.per_month(result.cost)), "Cost:"),
        _list(map(words.key, result.keys), "API keys without a name in the settings:"),
        _list(result.notes, "Notes:"),
        _list(advice.next_steps(result), "Next steps:"),
        f"<sub>{_sides(result)}</sub>",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _rows(result: ComparisonResult) -> str:
    lines = (
        (
            code(row.client),
            code(row.endpoint),
            words.share(row.share) if row.share is not None else "–",
            words.interval(row.interval) if row.interval is not None else "–",
            words.number(row.requests),
            words.number(row.not_compared),
            f"{_ICONS[row.verdict]} {row.verdict}",
        )
        for row in ordering.rows(result)
    )
    heads = ("client", "endpoint", "equivalent", "95 % interval", "requests", "not compared", "verdict")
    return _table(heads, lines)


def _groups(result: ComparisonResult) -> str:
    lines = (
        (
            code(group.endpoint),
            code(group.path),
            words.KINDS[group.kind],
            group.cause,
            words.seen_on(group, result),
            words.effect(group),
        )
        for group in ordering.groups(result)
    )
    return _table(("endpoint", "path", "difference", "cause", "seen on", ""), lines)


def _details(group: DifferenceGroup, result: ComparisonResult) -> str:
    parts = [
        f"<details><summary>{name(group.endpoint)}: {words.KINDS[group.kind]}, "
        f"{words.seen_on(group, result)}</summary>",
        f"{code(group.path)}: {sentence(group.why)}",
        *(_sample(sample) for sample in group.samples[:1]),
        "</details>",
    ]
    return "\n\n".join(parts)


def _sample(sample: DifferenceSample) -> str:
    shown = highlight.highlight_pair(sample.baseline, sample.candidate, SAMPLE)
    lines = [visible.line(f"{sample.origin} {sample.place}")]
    for mark, side in (("-", shown.baseline), ("+", shown.candidate)):
        lines += [f"{mark} {line}" for line in _side(side)]
    if sample.message:
        lines.append(visible.line(f"message: {sample.message}"))
    return fenced("diff", lines)


def _side(side: highlight.HighlightedText | None) -> list[str]:
    if side is None:
        return ["(nothing)"]
    left_out = side.before + side.after
    lines = visible.block("".join(piece.text for piece in side.pieces)).split("\n")
    return [*lines, *([f"… ({words.count(left_out, 'character')} left out)"] if left_out else [])]


def _rules(result: ComparisonResult) -> Iterator[str]:
    listed = [rule for rule in result.rules if rule.expired or not rule.ignored]
    ignored = sum(rule.ignored for rule in result.rules if not rule.expired)
    if result.rules:
        yield f"{words.count(len(result.rules), 'rule')} ignored {words.count(ignored, 'difference')}"
    yield from (f"{rule.name}: {words.used(rule)}" for rule in ordering.rules(result) if rule in listed)


def _sides(result: ComparisonResult) -> str:
    baseline, candidate, source = (name(text) for text in (*(side.place for side in result.sides), result.source))
    return f"{baseline} against {candidate}, from {source}, {words.moment(result.ended)}"


def _table(heads: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    rows = [f"| {' | '.join(cells)} |" for cells in lines]
    shown = _fitting(rows, TABLE)
    more = f"\n\n… and {words.number(len(rows) - len(shown))} more." if len(rows) > len(shown) else ""
    return "\n".join([f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads), *shown]) + more if rows else ""


def _list(sentences: Iterable[str], title: str) -> str:
    lines = [f"- {sentence(each)}" for each in sentences]
    shown = _fitting(lines, LIST)
    more = [f"- … and {words.number(len(lines) - len(shown))} more"] if len(lines) > len(shown) else []
    return "\n".join([f"**{title}**", "", *shown, *more]) if lines else ""


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """Return the first lines that fit into a number of characters."""
    shown = []
    for line in lines:
        room -= len(line)
        if room < 0:
            break
        shown.append(line)
    return shown
