"""Scenarios of what parts cost: a day of a BOM, and fields, sizes and operations that the upstream refuses."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import nexar_sandbox
from bench import bom
from bench.chaos.context import LIMITED, OTHER_KEY, UNLIMITED, ScenarioContext, get, usage_by_application

LINES = 300
CLIENTS, ROUNDS, QUERIES = 4, 3, 20


async def day_of_a_bom(context: ScenarioContext) -> None:
    """Request a BOM by four programs over four workers, a restart, and a day."""
    parts = await asyncio.to_thread(bom.parts_of_a_day, bom.FOUR, LINES, context.folder)
    context.report.figures |= {
        "parts of a day": str(parts.day),
        "of one request after 24 hours": str(parts.next_day),
    }
    context.report.check(parts.day <= LINES * bom.TOLERANCE, f"{parts.day} parts are billed for {LINES} lines")
    context.report.check(
        parts.next_day >= LINES, f"{parts.next_day} parts are billed after 24 hours: is the clock moved?"
    )


class Refusal(NamedTuple):
    """What the upstream refuses: settings of the sandbox, a fault, and settings of the service."""

    name: str
    sandbox: Mapping[str, Any] = {}
    fault: str = ""
    service: Mapping[str, Any] = {}


WITHOUT_SPECS = (nexar_sandbox.DEFAULT_APPLICATION.features or frozenset()) - {"TECH_SPECS"}
REFUSALS = (
    Refusal(
        "a feature that the plan lacks",
        {"applications": (nexar_sandbox.with_plan(nexar_sandbox.DEFAULT_APPLICATION, "standard", ()),)},
    ),
    Refusal("a field that the schema lacks", fault="missing-field field=SupPart.totalAvail"),
    Refusal("an operation that is too complex", {"answer_fields": 20_000}),
    Refusal("a response that is too large", service={"upstream.response_bytes": 400_000}),
)


async def refused_parts(context: ScenarioContext) -> None:
    """Request BOMs of 20 lines from sandboxes that refuse whole parts, or many of them at once."""
    catalog = nexar_sandbox.open_catalog()
    try:
        for refusal in REFUSALS:
            await _refuse(context, refusal, catalog)
    finally:
        catalog.close()


async def _refuse(context: ScenarioContext, refusal: Refusal, catalog: nexar_sandbox.Catalog) -> None:
    settings = nexar_sandbox.SandboxSettings(**refusal.sandbox)
    if refusal.fault:
        settings = nexar_sandbox.SandboxSettings(**refusal.sandbox, faults=nexar_sandbox.parse_faults(refusal.fault))
    numbers = _numbers(catalog, CLIENTS * ROUNDS * QUERIES)
    store = f"sqlite:{context.folder}/{refusal.name.replace(' ', '-')}.sqlite"
    async with nexar_sandbox.serve(settings, catalog=catalog) as sandbox:
        credentials = {"client_id": sandbox.client_id, "client_secret": sandbox.client_secret}
        changes: dict[str, Any] = {
            "store": store,
            "coalescing.stall_seconds": 60,  # on a busy machine a second attempt would be billed, too
            "upstream": {"graphql_url": sandbox.graphql_url, "token_url": sandbox.token_url},
            **{f"applications.{UNLIMITED}.{name}": value for name, value in credentials.items()},
            **{f"applications.{LIMITED}.{name}": value for name, value in credentials.items()},
            f"applications.{UNLIMITED}.features": "all",
            **refusal.service,
        }
        with context.service(changes) as process:
            failed, uncertain = 0, 0
            for round_ in range(ROUNDS):
                first = round_ * CLIENTS * QUERIES
                starts = range(first, first + CLIENTS * QUERIES, QUERIES)
                replies = await asyncio.gather(*(get(process, _target(numbers[n : n + QUERIES])) for n in starts))
                failed += sum(_failed_lines(*reply) for reply in replies)
            process.stop()
        usage = (await usage_by_application(store))[UNLIMITED]
        billed, uncertain = sandbox.billed_parts, usage.uncertain
    attempts = CLIENTS * QUERIES  # those of the first round, at most: then it is remembered
    context.report.figures[refusal.name] = f"billed {billed}, used {usage.used}, uncertain {uncertain}"
    context.report.check(not failed, f"{refusal.name}: {failed} lines have no part")
    context.report.check(usage.used == len(numbers), f"{refusal.name}: {usage.used} parts are booked")
    context.report.check(billed <= usage.used + uncertain, f"{refusal.name}: {billed} parts are billed, {usage}")
    context.report.check(
        uncertain <= attempts, f"{refusal.name}: {uncertain} parts are uncertain: it is tried repeatedly"
    )


def _failed_lines(status: int, body: bytes) -> int:
    results = json.loads(body)["results"] if status == 200 else []
    return QUERIES - sum(result["error"] is None and len(result["items"]) == 1 for result in results)


def _target(numbers: list[str]) -> str:
    queries = quote(json.dumps([{"mpn": number, "limit": 1} for number in numbers]))
    return f"/v3/parts/match?apikey={OTHER_KEY}&queries={queries}"


def _numbers(catalog: nexar_sandbox.Catalog, count: int) -> list[str]:
    """Return numbers of one part each."""
    parts = list(catalog.parts())
    plain = re.compile(r"\W")
    spellings = Counter(plain.sub("", mpn).upper() for part in parts for mpn in (part.mpn, *part.aka_mpns))
    return [part.mpn for part in parts if spellings[plain.sub("", part.mpn).upper()] == 1][:count]
