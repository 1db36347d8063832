"""`v3bridge sandbox`: the upstream by itself, for trying clients of the GraphQL service with no account."""

import dataclasses
import random
from pathlib import Path
from typing import Annotated

import typer

from proxy import errors
from proxy.cli import shown
from proxy.kit import looping
from proxy.workers import listening


def sandbox(
    *,
    host: Annotated[str, typer.Option(help="Listen here.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Listen here; 0: a free port, printed.")] = 8081,
    parts: Annotated[int | None, typer.Option(min=1, help="Generate parts until there are so many.")] = None,
    catalog: Annotated[Path | None, typer.Option(help="A JSON Lines file of parts of your own.")] = None,
    part_limit: Annotated[
        int | None, typer.Option(min=0, help="Parts that its application may use in a month; 1000 if omitted.")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Offers, prices and what faults strike are the same for the same seed.")
    ] = 1,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help='A fault, such as "5xx share=0.05 status=503"; see docs/sandbox.md.'),
    ] = None,
) -> None:
    """Start the sandbox and print its URLs and one ready client id and secret."""
    looping.run(_sandbox(host, port, parts=parts, catalog=catalog, part_limit=part_limit, seed=seed, texts=fault or []))


async def _sandbox(
    host: str,
    port: int,
    *,
    parts: int | None,
    catalog: Path | None,
    part_limit: int | None,
    seed: int,
    texts: list[str],
) -> None:
    from proxy.sandbox import accounts, app, settings
    from proxy.sandbox.injection import declarations

    stop = looping.on_signal()
    try:
        faults = tuple(fault for text in texts for fault in declarations.parse(text))
        plan = accounts.READY if part_limit is None else dataclasses.replace(accounts.READY, part_limit=part_limit)
        chosen = settings.Settings(parts=parts, catalog=catalog, seed=seed, accounts=(plan,), faults=faults)
        rng = random.Random(seed)  # noqa: S311 (it is to be foreseen)
        async with app.running(chosen, host, port, rng=rng) as upstream:
            account = upstream.account
            shown.upstream(
                upstream.url,
                upstream.graphql_url,
                upstream.token_url,
                account.client_id,
                account.client_secret,
            )
            await stop.wait()
    except OSError as error:
        raise listening.refused(host, port, error) from error
    except ValueError as error:
        raise errors.ConfigError(str(error)) from error
