"""`v3bridge config`: the settings in effect, and where each comes from."""

import os
from typing import Annotated

import typer

from proxy.cli import option_fields, shown
from proxy.config import loader
from proxy.kit import shipped


def config(
    config_file: option_fields.ConfigFile = None,
    everything: Annotated[bool, typer.Option("--all", help="Also print the settings at their defaults.")] = False,
    as_json: option_fields.AsJson = False,
) -> None:
    """Print the settings of a configuration and where each comes from; with --all every setting."""
    file = config_file or shipped.path("config.yaml")
    effective = loader.effective_settings(loader.load(file, os.environ, upstream=False), file)
    listed = [each for each in effective if everything or each["source"] != loader.DEFAULT]
    columns = {"setting": "name", "value": "value", "from": "source"}
    shown.print_result(listed, [shown.table(listed, columns)], as_json)
