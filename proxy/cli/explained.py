"""Terminal output of `v3bridge explain`: an explanation as sections, highlighted on a terminal only."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

import typer
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from proxy import config
from proxy.cli.shown import FILE_WIDTH, visible
from proxy.explain.explanation import (
    VALUE_MAX,
    ExplainedField,
    ExplainedFile,
    ExplainedOperation,
    Explanation,
    RequestKind,
    StoredResults,
    UnderstoodQuery,
    ranges,
    shown_value,
)
from proxy.kit.wording import counted, duration, printable

KIND_COLORS = {
    "exact": "green",
    "derived": "cyan",
    "constant": "yellow",
    "emptied": "yellow",
    "no source": "red",
    "no feature": "red",
}
QUERIES_SHOWN = 5  # whose keys are listed
NARROW = 110  # columns of a terminal below which two columns are one


def console() -> Console:
    """Return the console for explanations: wide where the output is a file or a pipe."""
    terminal = Console(highlight=False)
    return terminal if terminal.is_terminal else Console(highlight=False, width=FILE_WIDTH)


def show(explanation: Explanation, queries: bool) -> None:
    """Print one explanation; `queries`: with documents and variables of its operations."""
    lines = [*_request(explanation, queries, console().is_terminal, notes=True)]
    if explanation.error is None:
        lines += section("Response", _response(explanation))
    print_lines(lines)


def print_lines(lines: list[RenderableType]) -> None:
    """Print lines: to a file without the blanks that fill up cells."""
    screen = console()
    if screen.is_terminal:
        screen.print(*lines, sep="\n")
        return
    with screen.capture() as captured:
        screen.print(*lines, sep="\n")
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def show_file(explained: ExplainedFile, queries: bool) -> None:
    """Print the kinds of requests of a file, each with the explanation of its first request."""
    lines = [_summary(explained)]
    shown: dict[int, Explanation] = {}
    for number, kind in enumerate(explained.kinds, 1):
        lines += [Text(), Rule(visible(f"{number}. {_title(kind)}", "bold"), align="left")]
        lines += _request(kind.example, queries, console().is_terminal, notes=False)
        if kind.example.error is None:
            # Most kinds of one program have the same fields, or some of them.
            same = next((text for n, other in shown.items() if (text := _as_in(kind.example, n, other))), None)
            lines += section("Response", [visible(same)] if same else _response(kind.example))
            if same is None:
                shown[number] = kind.example
    stored = [kind.example.stored for kind in explained.kinds if kind.example.stored is not None]
    if notes := dict.fromkeys(note for each in stored for note in each.notes):
        heading = Rule(visible("All kinds", "bold"), align="left")
        lines += [Text(), heading, *section("Stored results", map(visible, notes))]
    print_lines(lines)


def _summary(explained: ExplainedFile) -> RenderableType:
    table = _table("kind of request", "requests", "distinct", "parts at most", "first")
    for column in table.columns[1:4]:
        column.justify = "right"
    for number, kind in enumerate(explained.kinds, 1):
        title = visible(f"{number}. {_title(kind)}")
        if kind.example.error is not None:
            title.append(f"  {kind.example.error.status}", "red")
        table.add_row(title, str(kind.occurrences), str(kind.requests), str(kind.parts_max), visible(kind.first, "dim"))
    head = (
        f"{explained.name}: {counted(explained.occurrences, 'request')}, {explained.requests} of them distinct, of "
        f"{counted(len(explained.kinds), 'kind')}; up to {counted(explained.parts_max, 'part')} if each distinct one "
        "is sent once"
    )
    skipped = [visible(f"{number} × left out: {reason}", "dim") for reason, number in explained.skipped.items()]
    return Group(visible(head, "bold"), *skipped, Text(), table)


def _title(kind: RequestKind) -> str:
    """Return what the requests of a kind have in common."""
    texts = [kind.endpoint]
    if kind.query_keys:
        texts.append(f"{'several queries' if kind.has_batches else 'one query'} by {', '.join(kind.query_keys)}")
    if kind.parameters:
        texts.append(f"with {', '.join(kind.parameters)}")
    if kind.include:
        texts.append(f"include[] {', '.join(kind.include)}")
    return " · ".join(texts)


def _request(explanation: Explanation, queries: bool, colors: bool, notes: bool) -> Iterator[RenderableType]:
    """Yield what is known of a request before its response."""
    yield from title(explanation)
    if explanation.error is not None:
        error = explanation.error
        yield _heading("Response")
        yield indented(visible(f"{error.status} {error.v3_class}: {error.message}", "red"))
        yield indented(visible("Nothing is sent upstream, and nothing is paid."))
        return
    yield from section("Understood as", _understood(explanation))
    yield from section("Sent to the Nexar API", _operations(explanation, queries, colors))
    if explanation.operations and (stored := list(_stored(explanation.stored, notes))):
        yield from section("Stored results", stored)


def section(title: str, lines: Iterable[RenderableType]) -> Iterator[RenderableType]:
    yield _heading(title)
    yield from (indented(line) for line in lines)


def title(explanation: Explanation) -> Iterator[RenderableType]:
    """Yield the request, and the client that it is executed as."""
    # Decoded: a JSON list of queries is unreadable otherwise. `--json` has the text to send.
    yield visible(f"{explanation.method} {unquote(explanation.request) or '(a path that v3 never had)'}", "bold cyan")
    client = explanation.client
    if client is None:
        return
    lacking = f", features {', '.join(client.features) or 'none'}"
    yield visible(
        f"{explanation.endpoint}, executed as {client.application}/{client.api_key} ({client.country}, "
        f"{client.currency}{lacking if len(client.features) < len(config.FEATURES) else ''}): {client.chosen_by}"
    )
    if client.problem is not None:
        yield visible(client.problem, "yellow")


def _understood(explanation: Explanation) -> Iterator[RenderableType]:
    table = _table()
    for query in explanation.queries:
        table.add_row(visible(f"queries[{query.position}]"), _query(query))
    for value in explanation.parameters:
        if not value.is_default:
            table.add_row(visible(value.name), visible(shown_value(value.value)))
    yield table
    defaults = [
        f"{value.name} {'none' if value.value in (None, [], '') else shown_value(value.value)}"
        for value in explanation.parameters
        if value.is_default
    ]
    if defaults:
        yield visible(f"defaults: {', '.join(defaults)}", "dim")
    for each in explanation.ignored:
        yield visible(f"ignored: {each.name[:VALUE_MAX]}: {each.reason}", "yellow")


def _query(query: UnderstoodQuery) -> Text:
    """Return a query: what was sent, and its defaults in a fainter color."""
    text = Text()
    for name, value in query.keys.items():
        if name in query.given:
            text.append(printable(f"{name} {shown_value(value)}  "))
    omitted = ((name, value) for name, value in query.keys.items() if name not in query.given and value)
    defaults = [f"{name} {shown_value(value)}" for name, value in omitted]
    defaults += [f"{name} 0" for name in ("start",) if name not in query.given]
    if query.error is not None:
        return text.append(printable(f"error: {query.error}"), "red")
    return text.append(printable(f"(default {', '.join(sorted(defaults))})" if defaults else ""), "dim")


def _operations(explanation: Explanation, queries: bool, colors: bool) -> Iterator[RenderableType]:
    if not explanation.operations:
        yield visible("nothing: the proxy knows the response without it")
    for number, operation in enumerate(explanation.operations, 1):
        yield from _operation(number, operation, explanation)
        if queries:
            yield Padding(_code(operation.document, "graphql", colors), (1, 0, 1, 3))
            variables = json.dumps(operation.variables, indent=2, ensure_ascii=False)
            yield Padding(_code(variables, "json", colors), (0, 0, 1, 3))
    if any("<id" in shown_value(list(each.variables.values())) for each in explanation.operations):
        yield visible(
            f"<id of …> stands for what the list of {', '.join(explanation.lists)} says; the search is not sent if "
            "the list has no such name",
            "dim",
        )
    cost = explanation.cost
    if cost is not None:
        further = cost.requests_max - cost.requests
        more = f", plus {further} if needed" if further else ""
        requests = counted(cost.requests, "GraphQL request")
        yield Text.assemble("At most ", (counted(cost.parts_max, "part"), "bold"), f". {requests}{more}. {cost.note}")


def _operation(number: int, operation: ExplainedOperation, explanation: Explanation) -> Iterator[RenderableType]:
    noun = {"match": "queries", "get_multi": "uid"}.get(explanation.action or "", "")
    of = f" for {noun}[{ranges(operation.queries)}]" if noun and operation.queries else ""
    cost = f"up to {counted(operation.parts_max, 'part')}" if operation.parts_max else "free of charge"
    yield Text.assemble(f"{number}. ", (operation.name, "bold"), f"{of}, {cost}")
    variables = ", ".join(f"{name} {shown_value(value)}" for name, value in operation.variables.items())
    if variables:
        yield Padding(visible(variables, "dim"), (0, 0, 0, 3), expand=False)
    if operation.condition is not None:
        yield Padding(visible(operation.condition, "italic"), (0, 0, 0, 3), expand=False)


def _stored(stored: StoredResults | None, notes: bool) -> Iterator[RenderableType]:
    if stored is None:
        return
    for query in stored.queries[:QUERIES_SHOWN]:
        yield visible(query.key)
    if len(stored.queries) > QUERIES_SHOWN:
        yield visible(f"… and {len(stored.queries) - QUERIES_SHOWN} more", "dim")
    if stored.queries:
        yield visible(
            f"of {stored.application}, whatever fields are shown, for {duration(stored.seconds)}, and "
            f"{duration(stored.stale_seconds)} more while the upstream fails"
        )
    if notes:
        yield from (visible(note, "dim") for note in stored.notes)


def _response(explanation: Explanation) -> Iterator[RenderableType]:
    """Yield the fields of a response, nested ones indented."""
    count = Counter(each.kind for each in explanation.fields)
    kinds = ", ".join(f"{number} {kind}" for kind, number in count.most_common())
    yield visible(f"{explanation.object}: {counted(len(explanation.fields), 'field')}, {kinds or 'none shown'}")
    is_narrow = console().width < NARROW
    table = _table("v3 field", "Nexar field", *([] if is_narrow else ["how, or why"]))
    for each in explanation.envelope:
        table.add_row(_name(each.path, each, 0), *_source(each, is_narrow))
    where = explanation.items or "the response"
    table.add_row(visible(f"{where}: {explanation.object}", "bold"), visible(explanation.records))
    around: list[str] = []  # paths of the objects around a field
    for each in explanation.fields:
        while around and not each.path.startswith((f"{around[-1]}.", f"{around[-1]}[].")):
            around.pop()
        name = each.path[len(around[-1]) :].removeprefix("[]").removeprefix(".") if around else each.path
        table.add_row(_name(name, each, len(around) + 1), *_source(each, is_narrow))
        around.append(each.path)
    yield table


def _as_in(explanation: Explanation, number: int, other: Explanation) -> str | None:
    """Describe a response by one that has all of its fields and was shown before; None if that has not."""
    if any(each not in other.fields for each in explanation.fields) or explanation.items != other.items:
        return None
    paths = {each.path for each in explanation.fields}
    missing = [each.path for each in other.fields if each.path not in paths and "." not in each.path]
    without = f", without {', '.join(missing)}" if missing else ""
    return f"The fields of {number}{without}."


def _name(name: str, field: ExplainedField, depth: int) -> Text:
    return Text.assemble("  " * depth, (printable(name), KIND_COLORS[field.kind]))


def _source(field: ExplainedField, is_narrow: bool) -> tuple[Text, ...]:
    """Return the cells of a field: where it comes from, and how; in one where there is no room for two."""
    upstream, how = visible(", ".join(field.upstream)), visible(field.how)
    if not is_narrow:
        return upstream, how
    how.stylize("dim")
    return (Text("\n").join(each for each in (upstream, how) if each),)


def _code(text: str, language: str, colors: bool) -> RenderableType:
    return Syntax(text, language, background_color="default", word_wrap=True) if colors else visible(text)


def _table(*headings: str) -> Table:
    """Return a table without lines, and without a header if no headings are given."""
    table = Table(*headings, show_header=bool(headings), box=None, pad_edge=False)
    for column in table.columns:
        # At no width may a name be cut: people copy it.
        column.overflow = "fold"
    return table


def _heading(title: str) -> Text:
    return visible(f"\n{title}", "bold")


def indented(line: RenderableType) -> Padding:
    return Padding(line, (0, 0, 0, 2), expand=False)
