"""`v3bridge explain --trace`: executes explained requests, on the embedded sandbox or on a configured upstream."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import typer
from rich.console import RenderableType
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from proxy import config
from proxy.cli import embedded, spending
from proxy.cli import explained as output
from proxy.cli.shown import visible
from proxy.explain.explanation import Explanation
from proxy.explain.trace import Trace, TracedRequest, TracedStep, trace
from proxy.gateway import assembly
from proxy.gateway.applications import Client
from proxy.kit import event_loop
from proxy.kit.clock import SystemClock
from proxy.kit.wording import counted, printable
from proxy.telemetry import log
from proxy.traffic.v3_request import V3Request, parse_target

RESPONSE_LINES, LINE_MAX = 40, 400  # lines, and characters of each, that are shown; `--json` has all
SOURCES = {
    None: "not executed",
    "memory": "cached in memory",
    "shared cache": "cached in the shared cache",
    "plan": "nothing is sent, because nothing can match",
    "upstream": "from the upstream",
    "coalesced": "from an equal query in flight",
    "stale": "stale, because the upstream fails",
    "failed": "failed",
}
MEANINGS = {
    "admit": "rate limit of the API key",
    "parse": "parameters",
    "plan search": "filters, with the ids of names",
    "compile": "documents and mapping of a new projection",
    "look up shared": "results of other workers",
    "plan": "GraphQL operations",
    "wait": "for an equal query in flight",
    "wait for worker": "that executes an equal query",
    "batch": "waits for a connection",
    "back off": "before a retry",
    "invalidate token": "refused by the upstream",
    "decode": "the upstream's JSON",
    "build list": "an index of it",
    "search list": "in this process",
    "translate": "upstream records to v3 objects",
    "store": "results in the response cache",
    "reply": "JSON of the response",
}
"""What is done in the steps that have no facts."""
FACTS: dict[str, Callable[[Any], str]] = {
    "application": "application {}".format,
    "api_key": "API key {}".format,
    "billed_parts": lambda number: f"{counted(number, 'part')} billed",
    "bytes": "{:,} bytes".format,
    "entries": "{:,} entries".format,
    "expires_in": "expires in {:,} s".format,
    "merged": lambda _: "in one operation with queries of other requests",
    "parts": lambda number: counted(number, "part"),
    "queries": lambda number: counted(number, "query", "queries"),
    "source": lambda place: "cached" if place == "memory" else f"from the {place}",
    "status": "HTTP {}".format,
    "uncertain_parts": lambda number: f"{counted(number, 'part')} may have been billed" if number else "none billed",
}


def run(
    explained: Sequence[Explanation], settings: config.Config, budget: int | None, *, yes: bool, as_json: bool
) -> None:
    """Execute the requests and print their traces; as JSON with their explanations."""
    log.configure("error", "console", sys.stderr)
    traced = _executed(explained, settings, budget, yes=yes)
    if as_json:
        value = traced[0] if len(traced) == 1 else traced
        _write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    else:
        _show(traced, settings)


def _write(content: bytes) -> None:
    """Write to standard output. With PYTHONUNBUFFERED it is no buffer: a write to a full pipe may be a partial one."""
    rest = memoryview(content)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.flush()


def _executed(
    explained: Sequence[Explanation], settings: config.Config, budget: int | None, *, yes: bool
) -> list[TracedRequest]:
    """Execute requests after each other, as far as a budget allows it. Exits with code 1 if its user declines."""
    free = settings.upstream == "sandbox"
    parts = sum(_worst_case(each) for each in explained)
    if not free:
        spending.say(f"to execute: {counted(len(explained), 'request')}, up to {counted(parts, 'part')}")
    if not spending.confirm_cost(parts, budget, 0, yes=yes, free=free):
        spending.say("nothing was sent")
        raise typer.Exit(1)
    return event_loop.run(_traces(explained, settings, None if free else budget))


async def _traces(explained: Sequence[Explanation], settings: config.Config, budget: int | None) -> list[TracedRequest]:
    async with AsyncExitStack() as stack:
        if settings.upstream == "sandbox":
            settings, _ = await embedded.with_sandbox(settings, stack, embedded.endless_sandbox())
        gateway = await assembly.build(_for_one_user(settings), SystemClock(), stack)
        traced: list[TracedRequest] = []
        spent = 0
        for each in explained:
            executed = None
            if budget is not None and _worst_case(each) > budget - spent:
                spending.say(f"left out, as it may cost more than is left of the budget: {each.endpoint}")
            elif each.endpoint and each.client is not None and each.method in ("GET", "HEAD"):
                path, query, _ = parse_target(each.request)
                executed = await trace(gateway, V3Request(path, query), _client(gateway, each))
                spent += executed.parts + executed.uncertain_parts  # those may be on the bill, too
            traced.append(TracedRequest(each, executed))
        return traced


def _for_one_user(settings: config.Config) -> config.Config:
    """Return the settings of a gateway that executes one request after the other."""
    return msgspec.structs.replace(
        settings,
        tracing=config.TracingSettings(),
        applications={
            name: msgspec.structs.replace(entry, reconcile=None) for name, entry in settings.applications.items()
        },
    )


def _client(gateway: assembly.Gateway, explanation: Explanation) -> Callable[[], Client]:
    assert explanation.client is not None  # noqa: S101 - of a v3 endpoint
    names = explanation.client.application, explanation.client.api_key
    return lambda: next(each for each in gateway.applications.all if (each.application.name, each.key) == names)


def _worst_case(explanation: Explanation) -> int:
    return explanation.cost.parts_max if explanation.cost is not None else 0


def _show(traced: Sequence[TracedRequest], settings: config.Config) -> None:
    place = "on the embedded sandbox" if settings.upstream == "sandbox" else "on the configured upstream"
    lines: list[RenderableType] = []
    for number, each in enumerate(traced):
        lines += [Rule()] if number else []
        lines += _lines(each, place, output.console().is_terminal)
    output.print_lines(lines)


def _lines(traced: TracedRequest, place: str, colors: bool) -> Iterator[RenderableType]:
    yield from output.title(traced.explanation)
    executed = traced.trace
    if executed is None:
        error = traced.explanation.error
        reason = f": {error.status} {error.message}" if error else ""
        yield visible(f"not executed{reason}", "red" if error else "yellow")
        return
    yield visible(f"executed {place}")
    yield from output.section("Steps", [_steps(executed)])
    if executed.queries:
        yield from output.section("Queries", [_queries(executed)])
    yield from output.section("Result", _result(executed))
    yield from output.section("Response", _response(executed, colors))


def _steps(executed: Trace) -> Table:
    table = Table("at ms", "ms", "step", "", box=None, pad_edge=False)
    for column in table.columns[:2]:
        column.justify = "right"
    for step, depth in _walk(executed.steps, 0):
        took = "…" if step.duration_ms is None else f"{step.duration_ms:,.2f}"
        style = "red" if step.error else "bold" if depth == 0 else ""
        table.add_row(f"{step.began_ms:,.2f}", took, visible("  " * depth + step.name, style), _what(step, executed))
    return table


def _walk(steps: Iterable[TracedStep], depth: int) -> Iterator[tuple[TracedStep, int]]:
    for step in steps:
        yield step, depth
        yield from _walk(step.steps, depth + 1)


def _what(step: TracedStep, executed: Trace) -> Text:
    """Return what a step did and decided, and its error."""
    text = Text()
    if step.name in MEANINGS:
        text.append(MEANINGS[step.name], "dim")
    elif step.name == "look up":
        number = sum(query.source == "memory" for query in executed.queries)
        text.append(f"{number} of {counted(len(executed.queries), 'query', 'queries')} in memory")
    text.append(printable(", ".join(_facts(step.facts))))
    if step.error:
        text.append(printable(f"{'; ' if text else ''}{step.error}"), "red")
    return text


def _facts(facts: dict[str, Any]) -> Iterator[str]:
    """Yield facts in words."""
    for name, value in facts.items():
        if name == "used":
            yield _used(value, facts["limit"])
        elif name != "limit" and value is not False:
            yield FACTS.get(name, str)(value)


def _used(parts: int, limit: int | None) -> str:
    return f"{parts:,} used, no limit" if limit is None else f"{parts:,} of {limit:,} used"


def _queries(executed: Trace) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False)
    noun = {"/parts/match": "queries", "/parts/get_multi": "uid"}.get(executed.endpoint)
    for query in executed.queries:
        label = f"{noun}[{query.position}] " if noun else ""
        table.add_row(visible(f"{label}{query.query}"), visible(SOURCES[query.source]))
    return table


def _result(executed: Trace) -> Iterator[Text]:
    style = "red" if executed.error else "green"
    cache = f", X-Cache: {executed.cache}" if executed.cache else ""
    yield visible(f"HTTP {executed.status} in {executed.duration_ms:,.1f} ms{cache}", style)
    if executed.error is not None:
        after = f"; Retry-After: {executed.retry_after}" if executed.retry_after is not None else ""
        yield visible(f"{executed.error.v3_class}: {executed.error.message}{after}", style)
    uncertain = f", {executed.uncertain_parts} more may have been" if executed.uncertain_parts else ""
    yield visible(
        f"{counted(executed.parts, 'part')} billed{uncertain}; {counted(executed.upstream_requests, 'GraphQL request')}"
        f", {counted(executed.token_requests, 'token request')}"
    )
    quota = executed.quota
    if quota is not None:
        is_reset = quota.limit is not None and quota.resets_in is not None
        reset = f"; reset in {(quota.resets_in or 0) / 86_400:.1f} days" if is_reset else ""
        yield visible(f"quota: {_used(quota.used, quota.limit)}{reset}")
    if executed.unsupported:
        yield visible(f"ignored (X-V3-Unsupported): {', '.join(executed.unsupported)}", "yellow")


def _response(executed: Trace, colors: bool) -> Iterator[RenderableType]:
    """Yield the beginning of the response, indented."""
    is_text = isinstance(executed.response, str)
    text = executed.response if is_text else msgspec.json.format(bytes(executed.response), indent=2).decode()
    lines = text.splitlines()
    text = printable("\n".join(line[:LINE_MAX] for line in lines[:RESPONSE_LINES]))
    yield Syntax(text, "json", background_color="default") if colors else Text(text)
    if len(lines) > RESPONSE_LINES:
        yield visible(f"… {len(lines) - RESPONSE_LINES} more lines; --json has all", "dim")
