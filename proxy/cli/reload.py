"""`v3bridge reload`: lets the running service read its configuration, mappings and TLS files again."""

import typer

from proxy import config, errors
from proxy.cli import option_fields
from proxy.kit import shipped
from proxy.kit.wording import printable


def reload(
    config_file: option_fields.ConfigFile = None,
) -> None:
    """Reload the configuration of the running service, and print what changed.

    The exit code is 0, 1 if mistakes left the running configuration as it was, and 2 if no service was found.
    """
    from proxy.workers import control

    file = config_file or shipped.path("config.yaml")
    results = control.reload_services(file)
    if not results:
        raise errors.ConfigError(
            f"no service of this user runs with {file.absolute()}; name its configuration with --config, be its user, "
            "or send SIGHUP to it"
        )
    for process, result in results.items():
        show(result, process)
    if any(result.outcome == "failed" for result in results.values()):
        raise typer.Exit(1)


def show(result: config.ReloadResult, process: int) -> None:
    """Print the result of one service: mistakes to standard error, in the form of those at the start."""
    if result.outcome == "failed":
        for mistake in result.mistakes:
            typer.echo(f"v3bridge: {printable(mistake)}", err=True)
        typer.echo(f"v3bridge: not reloaded: process {process} goes on with the configuration that it has", err=True)
        return
    typer.echo(f"Process {process} reloaded its configuration.")
    _list("Changed", result.changed or ("nothing",))
    if result.waiting_for_restart:
        _list("Waiting for a restart", result.waiting_for_restart)


def _list(heading: str, names: tuple[str, ...]) -> None:
    typer.echo(f"{heading}:")
    for name in names:
        typer.echo(f"  {printable(name)}")
