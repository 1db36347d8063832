"""`v3bridge status`: the running service on one screen, as `/status` of its operators' port has it."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from proxy import errors, sockets
from proxy.cli import option_fields, shown
from proxy.cli.usage import COLUMNS, client_name, endpoints
from proxy.kit.wording import counted, duration, printable
from proxy.web.status import another

SECONDS = 10.0  # that the service may take to respond
ROWS = 5  # of clients, unknown API keys and failures
NEARLY_USED = 0.8  # share of a limit from which --check names it

Status = dict[str, Any]


def status(
    config_file: option_fields.ConfigFile = None,
    admin_port: option_fields.AdminPort = None,
    as_json: option_fields.AsJson = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Print only what needs an operator, a line each; the exit code is 1 then."),
    ] = False,
) -> None:
    """Print the state of the service: ready or why not, parts used and left, upstream, who calls, failures.

    The exit code is 0, 1 if it is not ready, and 2 if no service responds.
    """
    settings = option_fields.configured(config_file)
    admin = settings.admin
    if not admin:
        raise errors.ConfigError("the operators' port has the state of the service: remove `admin: false`")
    url = f"http://{sockets.shown(admin.host, admin.port if admin_port is None else admin_port)}"
    found = _read(url, admin.token.reveal() if admin.token else "")
    if config_file is not None and (other := another(found, settings)):
        raise errors.ConfigError(
            f"{other}, responds at {url}/status; the service of {config_file} needs an operators' port of its own: "
            f"{sockets.OPERATORS_OPTIONS}"
        )
    if check:
        lines = [printable(reason) for reason in reasons(found)]
        typer.echo("\n".join(lines) or "nothing needs an operator")
        raise typer.Exit(int(bool(lines)))
    shown.print_result(found, _lines(url, found), as_json)
    if not found["ready"]:
        raise typer.Exit(1)


def _read(url: str, token: str) -> Status:
    """Return the status of the service whose operators' port is at a URL. Raises ConfigError."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"{url}/status", headers=headers)  # noqa: S310 - that of the configuration
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=SECONDS) as response:
            read: Status = json.load(response)
        is_state = isinstance(read, dict) and read.keys() >= {"ready", "reasons", "tokens", "uptime_seconds"}
    except urllib.error.HTTPError as error:
        if "v3bridge" in error.headers.get("WWW-Authenticate", ""):
            raise errors.ConfigError(
                f"{url}/status is of a v3bridge with an admin.token that this configuration does not have: name its "
                "own with --config"
            ) from error
        is_state = False
    except (ValueError, http.client.HTTPException):
        is_state = False
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise errors.ConfigError(
            f"no service responds at {url}/status: {reason}; name its configuration with --config, or its operators' "
            "port with --admin-port; what its store has is shown by v3bridge usage"
        ) from error
    if not is_state:
        raise errors.ConfigError(f"what responds at {url}/status is not the operators' port of a v3bridge")
    return read


def reasons(read: Status) -> Iterator[str]:
    """Yield why a service needs an operator: for scripts, timers and monitoring without Prometheus."""
    for failed in read["reasons"]:
        yield f"not ready: {failed['check']}: {failed['reason']}"
    known = {failed["reason"] for failed in read["reasons"]}
    for token in read["tokens"]:
        if token["refusal"] and token["refusal"] not in known:
            yield f"credentials of {token['application']} refused: {token['refusal']}"
    for name, state in read["breakers"].items():
        if state != "closed":
            yield f"circuit breaker of {name} {state}"
    if read["store_failure"]:
        yield f"usage unknown: {read['store_failure']}"
    for row in read["usage"]:
        name, used = client_name(row), row["used"] + row["uncertain"]
        if row["exhausted_until"]:
            yield f"{name} exhausted until {row['exhausted_until']}: the upstream refuses its requests"
        elif row["limit"] and used >= NEARLY_USED * row["limit"]:
            limit = counted(row["limit"], "part")
            yield f"{name} has used {used:,} of {limit} ({row['period']}): {used / row['limit']:.0%}"


def _lines(url: str, read: Status) -> Iterator[shown.Line]:
    state, running = "ready" if read["ready"] else "not ready", duration(read["uptime_seconds"])
    yield f"{state}, operators' port {url}, version {read['version']}, up {running}"
    yield from (shown.visible(reason, "red") for reason in reasons(read))
    program = {"program": "user_agent", "last": "last_seen"}
    calls: dict[str, shown.Column] = {"last calls": client_name, "endpoints": endpoints}
    failed = {name: name for name in ("request", "route", "status", "error")}
    yield shown.table(read["usage"], COLUMNS)
    yield shown.table(read["clients"][:ROWS], calls | program)
    yield shown.table(read["unknown_keys"][:ROWS], {"unknown API keys": "fingerprint", "address": "address"} | program)
    yield shown.table(read["failures"][:ROWS], {"last failures": "at", **failed, "client": client_name})
