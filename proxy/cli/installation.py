"""`v3bridge init` asks for what a configuration needs, writes it and checks it; `doctor` checks an installation, and
says what to do; `config` prints the settings in effect, and where each comes from.
"""

import asyncio
import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from proxy import cli, errors, log
from proxy import config as settings
from proxy.cli import commands
from proxy.config import loader
from proxy.doctor import Check, Subject, configuration, disk, listening, run, store, upstream
from proxy.gateway import Gateway
from proxy.kit import clock, located_yaml, printable, shipped
from proxy.kit.located_yaml import Trail
from proxy.planning import queries

APPLICATION = "our"
REFERENCES = ("env:", "file:")
NUMBER = "SN74S74N"  # of the first request, too, which is free then
QUESTION = "Fetch one part with all fields, to learn which features the plan has? It costs 1 part."
DEFAULT = "default"  # the source of a setting that the file does not have
CHECKS = {
    "configuration": Check("", configuration),
    "dns": Check("configuration", upstream.dns),
    "tls": Check("dns", upstream.tls),
    "token": Check("tls", upstream.token, each=True),
    "scope": Check("token", upstream.scope, each=True),
    "plan": Check("scope", upstream.plan, each=True),
    "schema": Check("scope", upstream.schema, each=True),
    "order": Check("scope", upstream.order, each=True),
    "store": Check("configuration", store),
    "clock": Check("tls", upstream.clock),
    "ports": Check("configuration", listening),
    "disk": Check("configuration", disk),
}


def init(
    *,
    output: Annotated[Path, typer.Option(help="The file to write; it must not exist.")] = Path("our.yaml"),
    client_id: Annotated[str | None, typer.Option(help="Client id of the application at Nexar, or env:NAME.")] = None,
    client_secret: Annotated[
        str | None, typer.Option(metavar="env:NAME|file:PATH", help="Where the client secret is read from.")
    ] = None,
    plan: Annotated[settings.Plan | None, typer.Option(help="Your plan; it sets parts, period and features.")] = None,
    apikey: Annotated[str | None, typer.Option(help="The API key that your programs send; else one is made.")] = None,
    graphql_url: Annotated[str | None, typer.Option(metavar="URL", help="GraphQL endpoint, if not Nexar's.")] = None,
    token_url: Annotated[str | None, typer.Option(metavar="URL", help="Its token endpoint.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: use the options, and fetch the part.")] = False,
) -> None:
    """Write a configuration for a Nexar account: ask for what it needs, check it with doctor, and fetch one part.

    The part shows which features the plan has; it costs 1 part, and is booked. The exit code is that of doctor: 0, or 1
    where the file is written and something is to do.
    """
    if output.is_dir():
        raise errors.ConfigError(f"{output}: is a folder: name a file in it with --output")
    secret_file = output.with_suffix(".secret")
    if output.exists() or secret_file.exists():
        raise errors.ConfigError(f"{output} or {secret_file} exists; name another file with --output, or delete it")
    if client_secret is not None and not client_secret.startswith(REFERENCES):
        why = "must be env:NAME or file:PATH: others can read a command line"
        raise typer.BadParameter(why, param_hint="--client-secret")
    client_id = client_id or _asked("Client id of your application (portal.nexar.com)", "--client-id", yes)
    secret = client_secret or _asked("Client secret (not shown; or env:NAME, file:PATH)", "--client-secret", yes)
    tier, tiers = plan or "", ", ".join(settings.PLANS)
    while not (yes or tier in settings.PLANS):
        typer.echo(f"{tier!r} is none of {tiers}\n" if tier else "", nl=False)
        tier = typer.prompt(f"Plan ({tiers})", default="evaluation").strip().lower()
    if not (apikey or yes):
        apikey = typer.prompt("API key that your programs send (empty: make one)", default="", show_default=False)
    apikey = (apikey or "").strip() or secrets.token_urlsafe(24)
    # JSON is YAML, whatever a key has in it.
    addresses = {name: url for name, url in (("graphql_url", graphql_url), ("token_url", token_url)) if url}
    lines = [
        "# All settings: v3bridge config --all",
        f"upstream: {json.dumps(addresses) if addresses else 'nexar'}",
        "applications:",
        f"  {APPLICATION}:",
        f"    client_id: {json.dumps(client_id)}",
        f"    client_secret: {json.dumps(secret if secret.startswith(REFERENCES) else f'file:{secret_file.name}')}",
        *([f"    plan: {tier}"] if tier else []),
        f"    apikeys: [{json.dumps(apikey)}]",
    ]
    _write(output, "\n".join(lines), secret_file, "" if secret.startswith(REFERENCES) else secret)
    code = asyncio.run(examine(output))
    if code == 0 and (yes or typer.confirm(f"\n{QUESTION}", default=True)):
        asyncio.run(_learn_features(output))
    query = f'[{{"mpn":"{NUMBER}","limit":1}}]'
    url = f"http://127.0.0.1:8080/v3/parts/match?apikey={apikey}&pretty_print=true&queries={query}"
    typer.echo(f"\nNext:\n  v3bridge serve --config {output}\n  curl -g '{url}'")
    raise typer.Exit(code)


def _write(output: Path, text: str, secret_file: Path, secret: str) -> None:
    """Write a configuration, and perhaps a secret, for their owner only. Raises ConfigError, and then leaves none."""
    written = {secret_file: secret, output: text} if secret else {output: text}
    try:
        for file, content in written.items():
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
                stream.write(f"{content}\n")
        loader.load(output, os.environ)
    except (errors.ConfigError, OSError) as error:
        for file in written:
            file.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise errors.ConfigError(f"{error.filename} cannot be written: {error.strerror}") from error
        raise
    typer.echo(f"{output} is written{f', with the secret in {secret_file}' if secret else ''}.\n")


async def _learn_features(output: Path) -> None:
    """Fetch and book one part, whose errors say which features the plan lacks; write those that it has."""
    configured = loader.load(output, os.environ)
    application = msgspec.structs.replace(configured.applications[APPLICATION], features="unknown")
    asking = msgspec.structs.replace(configured, applications={APPLICATION: application})
    async with AsyncExitStack() as resources:
        gateway = await Gateway.open(asking, clock.Clock(), resources)
        (client,) = gateway.applications.clients.values()
        deadline = gateway.metadata().deadline
        (answer,) = await gateway.pipeline.resolve(client, [queries.matching(0, 1, mpn=NUMBER)], deadline)
    if answer.result is None or not answer.result.items:
        reason = answer.error.message if answer.error else f"no part has the number {NUMBER}"
        typer.echo(f"Which features the plan has is found out by your first request: {reason}.")
        return
    features = ", ".join(sorted(answer.features))
    with output.open("a", encoding="utf-8") as file:
        file.write(f"    features: [{features}]\n")
    typer.echo(f"The part is booked; the plan has {features or 'no further features'}.")


def _asked(text: str, option: str, yes: bool) -> str:
    if yes:
        raise typer.BadParameter("is needed with --yes", param_hint=option)
    return str(typer.prompt(text, hide_input="secret" in option)).strip()


def doctor(
    config_file: commands.ConfigFile = None,
    only: Annotated[
        str, typer.Option(metavar="NAME", help="Run this check, such as schema, and those that it needs.")
    ] = "",
    as_json: commands.AsJson = False,
) -> None:
    """Check configuration, network, credentials, plan and machine, and say what to do. Costs 0 parts."""
    if only and only not in CHECKS:
        raise typer.BadParameter(f"{only!r} is none of {', '.join(CHECKS)}", param_hint="--only")
    raise typer.Exit(asyncio.run(examine(config_file or shipped("config.yaml"), only, as_json=as_json)))


async def examine(file: Path, only: str = "", *, as_json: bool = False) -> int:
    """Check an installation, and print each result when it is there. Return the exit code: 0 where nothing has failed
    (a warning is no failure), 2 for a wrong configuration, else 1."""
    log.configure("error", "console", sys.stderr)  # what is worth a warning is a result
    results = []
    async with AsyncExitStack() as resources:
        async for result in run(Subject(file, clock.Clock(), cli.with_sandbox, resources), CHECKS, only):
            results.append(result)
            advice = f"\n{'':14}→ {result.advice}" if result.advice else ""
            if not as_json:
                typer.echo(printable(f"{result.name:14}{result.outcome:8}{result.text}{advice}"))
    failed = [result.outcome in ("failed", "skipped") for result in results]
    code = 2 if failed[0] else int(any(failed))
    if as_json:
        commands.print_json({"ok": not code, "checks": results})
    return code


def config(
    config_file: commands.ConfigFile = None,
    everything: Annotated[bool, typer.Option("--all", help="Also print the settings at their defaults.")] = False,
    as_json: commands.AsJson = False,
) -> None:
    """Print the settings of a configuration and where each comes from; with --all every setting."""
    file = config_file or shipped("config.yaml")
    loaded, located = loader.load(file, os.environ, upstream=False), located_yaml.load(file)
    listed = []
    for name, at, value in _settings(loaded, (), ()):
        source = _source(located, at)
        if source == DEFAULT and not everything:
            continue
        text = str(value)  # as the file would have it
        if isinstance(value, settings.StoreUrl):
            text = value.shown
        elif isinstance(value, settings.Secret | settings.ClientId):
            text = "hidden"
        elif isinstance(value, tuple):
            text = ", ".join(map(str, value)) or "none"
        elif value is None or isinstance(value, bool):
            text = "none" if value is None else text.lower()
        listed.append({"name": ".".join(map(str, name)), "value": text, "source": source})
    table = commands.table(listed, {"setting": "name", "value": "value", "from": "source"})
    commands.print_result(listed, [table], as_json)


def _settings(value: Any, name: Trail, at: Trail) -> Iterator[tuple[Trail, Trail, Any]]:
    """Yield the name, the place in the file and the value of each setting."""
    inner: list[tuple[Any, Any, Any]]
    if isinstance(value, settings.Settings):
        inner = [(field, field, getattr(value, field)) for field in value.__struct_fields__]
    elif isinstance(value, dict):
        inner = [(key, key, each) for key, each in value.items()]
    elif isinstance(value, tuple) and value and isinstance(value[0], settings.ApiKeySettings):
        inner = [(key.name or index + 1, index, key) for index, key in enumerate(value)]
    else:
        yield name, at, value
        return
    for label, step, each in inner:
        yield from _settings(each, (*name, label), (*at, step))


def _source(located: located_yaml.LocatedYaml, at: Trail) -> str:
    """Return `config.yaml:12`, with `env:NAME` or `file:PATH` where the value is read from there."""
    raw = located.data
    for step in at:
        if isinstance(raw, str) and step == "key":  # an API key that is no block
            break
        if isinstance(raw, dict) and step in settings.PLANS.get(str(raw.get("plan")), {}) and step not in raw:
            at = (*at[:-1], "plan")
            break
        if not (step in raw if isinstance(raw, dict) else isinstance(raw, list)):
            return DEFAULT
        raw = raw[step]
    line = located.place(at).rpartition(":")[0]
    return f"{raw}, {line}" if isinstance(raw, str) and raw.startswith(("env:", "file:")) else line
