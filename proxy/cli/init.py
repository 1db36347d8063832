"""`v3bridge init`: asks for what a configuration needs, checks it, and writes it."""

import asyncio
import json
import os
import secrets
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from proxy import config, errors
from proxy.cli import doctor
from proxy.config import loader
from proxy.gateway.core import Gateway
from proxy.kit import clock
from proxy.planning import queries

APPLICATION = "our"
REFERENCES = ("env:", "file:")
NUMBER = "SN74S74N"  # of the first request, too, which is free then
QUESTION = "Fetch one part with all fields, to learn which features the plan has? It costs 1 part."


def init(
    *,
    output: Annotated[Path, typer.Option(help="The file to write; it must not exist.")] = Path("our.yaml"),
    client_id: Annotated[str | None, typer.Option(help="Client id of the application at Nexar, or env:NAME.")] = None,
    client_secret: Annotated[
        str | None, typer.Option(metavar="env:NAME|file:PATH", help="Where the client secret is read from.")
    ] = None,
    plan: Annotated[
        Literal["evaluation", "standard", "pro", "enterprise"] | None,
        typer.Option(help="The plan at Nexar; it sets parts, period and features."),
    ] = None,
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
    tier = plan or (None if yes else _asked_plan())
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
    code = asyncio.run(doctor.examine(output))
    if code == 0 and (yes or typer.confirm(f"\n{QUESTION}", default=True)):
        asyncio.run(_learn_features(output))
    query = f'[{{"mpn":"{NUMBER}","limit":1}}]'
    url = f"http://127.0.0.1:8080/v3/parts/match?apikey={apikey}&pretty_print=true&queries={query}"
    typer.echo(f"\nNext:\n  v3bridge serve --config {output}\n  curl -g '{url}'")
    raise typer.Exit(code)


def _write(output: Path, text: str, secret_file: Path, secret: str) -> None:
    """Write a configuration, and a secret if there is one, for their owner only. Raises ConfigError for a mistake in
    it; then neither is left."""
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
    """Fetch one part with all fields, whose errors say which features the plan lacks, and add those that it has to the
    configuration. The part is booked in its store."""
    configured = loader.load(output, os.environ)
    application = msgspec.structs.replace(configured.applications[APPLICATION], features="unknown")
    asking = msgspec.structs.replace(configured, applications={APPLICATION: application})
    async with AsyncExitStack() as resources:
        gateway = await Gateway.open(asking, clock.SystemClock(), resources)
        (client,) = gateway.applications.clients.values()
        deadline = gateway.deadline(gateway.clock.monotonic())
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


def _asked_plan() -> str:
    names = ", ".join(config.PLANS)
    while (answer := typer.prompt(f"Plan ({names})", default="evaluation").strip().lower()) not in config.PLANS:
        typer.echo(f"{answer!r} is none of {names}")
    return str(answer)
