"""`v3bridge sandbox`: runs `nexar-sandbox`, the simulated upstream by itself, for clients of the GraphQL API."""

import typer

COMMAND = {
    "context_settings": {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    "add_help_option": False,
}


def sandbox(context: typer.Context) -> None:
    """Run nexar-sandbox, the simulated Nexar services, by itself; it takes the options of that program."""
    from nexar_sandbox import command

    command.main(context.args, context.command_path, "v3bridge")
