"""What parts cost: numbers of one part each, requests for them in three dialects, and what is booked for them."""

import concurrent.futures
import json
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from acceptance import running

KEY = "key-of-the-shop"
LIMIT = "1000000"  # parts a month that the sandbox lets the first application have

T = TypeVar("T")
R = TypeVar("R")


def numbers(count: int, first: int = 0) -> list[str]:
    """Return part numbers, each of one part in the catalog of `sandbox`."""
    return [f"XYZ{number:05}" for number in range(first, first + count)]


def sandbox(
    processes: running.Processes, count: int = 300, *options: str, clock: running.Clock | None = None
) -> running.Sandbox:
    """Start a sandbox with so many of these numbers."""
    catalog = processes.new_folder() / "catalog.jsonl"
    catalog.write_text("".join(f'{{"mpn": "{each}", "manufacturer": "370"}}\n' for each in numbers(count)))
    return processes.sandbox("--catalog", str(catalog), "--part-limit", LIMIT, *options, clock=clock)


def application(sandbox: running.Sandbox, settings: str = f"apikeys: [{KEY}]", second: bool = False) -> str:
    """Return the settings of an application with the credentials of the sandbox's first or second one."""
    kind = "design_client" if second else "client"
    ways = sandbox.ways
    return f"{{client_id: {ways[f'{kind}_id']}, client_secret: {ways[f'{kind}_secret']}, {settings}}}"


def configuration(sandbox: running.Sandbox, store: str = "sqlite:store", **applications: str) -> str:
    """Return a configuration in front of the sandbox; by default with one application and one key."""
    chosen = applications or {"shop": application(sandbox)}
    lines = "\n".join(f"  {name}: {settings}" for name, settings in chosen.items())
    return f'{sandbox.upstream}\nstore: "{store}"\nlog: {{format: json}}\napplications:\n{lines}\n'


def match(*wanted: str, key: str = KEY, limit: int = 3, more: str = "") -> str:
    """Return the target of a /parts/match for some numbers."""
    queries = quote(json.dumps([{"mpn": number, "limit": limit} for number in wanted]))
    return f"/v3/parts/match?apikey={key}&queries={queries}{more}"


def ask(service: running.Service, dialect: str, number: str, key: str = KEY) -> running.Response:
    """Request the part of a number in a dialect: v3, GraphQL or v4."""
    if dialect == "v3":
        return service.get(match(number, key=key))
    path, search = ("/graphql", "supSearchMpn") if dialect == "GraphQL" else ("/api/v4/endpoint", "search_mpn")
    document = f'{{ {search}(q: "{number}", limit: 1) {{ results {{ part {{ mpn }} }} }} }}'
    body, json_ = json.dumps({"query": document}), "application/json"
    return service.get(path, method="POST", body=body, token=key, content_type=json_)


def found(response: running.Response) -> list[str]:
    """Return the numbers that a response of any dialect has a part for."""
    if response.status != 200:
        return []
    if "data" in response.json:
        (search,) = (response.json["data"] or {"": None}).values()
        return [each["part"]["mpn"] for each in (search or {"results": ()})["results"]]
    return [item["mpn"] for result in response.json["results"] for item in result["items"]]


def at_once(send: Callable[[T], R], wanted: Sequence[T]) -> list[R]:
    """Call a function with all values at the same moment."""
    ready = threading.Barrier(len(wanted))

    def start(each: T) -> R:
        ready.wait(running.SECONDS)
        return send(each)

    with concurrent.futures.ThreadPoolExecutor(len(wanted)) as threads:
        return list(threads.map(start, wanted))


class Usage(NamedTuple):
    """What `v3bridge usage` says of an account."""

    used: int
    uncertain: int
    reserved: int
    limit: int | None


def usage(service: running.Service) -> dict[str, Usage]:
    """Return the usage of each application, and of each of its keys as application/key."""
    time = service.clock.variables if service.clock else {}
    done = running.command("usage", "--json", "--config", service.file, folder=service.folder, **time)
    assert done.returncode == 0, done.stderr
    rows: Iterable[dict[str, Any]] = json.loads(done.stdout)
    return {
        "/".join(filter(None, (row["application"], row["key"]))): Usage(*(row[name] for name in Usage._fields))
        for row in rows
    }


def billed(sandbox: running.Sandbox) -> list[int]:
    """Return the parts that the sandbox billed the first application and the second."""
    parts: dict[str, int] = {}
    for entry in sandbox.journal()["entries"]:
        if entry["application"]:
            parts[entry["application"]] = parts.get(entry["application"], 0) + entry["parts"]
    return [parts[each] for each in sorted(parts)]
