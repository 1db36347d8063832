"""`v3bridge serve` and `v3bridge sandbox`, which start servers. The service begins anew without the packages that have
read its options (cli/service.py)."""

import json
import os
import sys
from typing import Annotated

import typer

from proxy.cli import SERVE, option_fields

OF_ANOTHER_PROGRAM = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
SETTINGS = {"sandbox": {"context_settings": OF_ANOTHER_PROGRAM, "add_help_option": False}}


def serve(
    config_file: option_fields.ConfigFile = None,
    host: Annotated[str | None, typer.Option(help="Listen here instead of listen.host.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Instead of listen.port; 0: a free one.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=256, help="Processes, instead of listen.workers.")] = None,
    admin_port: option_fields.AdminPort = None,
) -> None:
    """Start the proxy and print a curl line that works, and the address of the status for operators."""
    given = (("host", host), ("port", port), ("workers", workers))
    listen = {name: value for name, value in given if value is not None}
    file = config_file and str(config_file)
    options = json.dumps({"config_file": file, "listen": listen, "admin_port": admin_port})
    os.execve(sys.executable, sys.orig_argv, {**os.environ, SERVE: options})  # noqa: S606 - this very program


def sandbox(context: typer.Context) -> None:
    """Run nexar-sandbox, the simulated Nexar services, by itself; it takes the options of that program."""
    from nexar_sandbox import command

    command.main(context.args, context.command_path, "v3bridge")
