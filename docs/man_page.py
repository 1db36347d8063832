"""The man pages, made of the programs' own help.

`python -m docs` writes docs/v3bridge.1 and sandbox/nexar-sandbox.1, which the wheels install in share/man;
tests/project holds the pages to it.
"""

import inspect
import re

import nexar_sandbox
from docs import command_line
from nexar_sandbox import command as sandbox_command
from proxy import __version__
from proxy.cli import main

COMMAND = re.compile(r"`([^`]+)`")
SPECIAL = {"\\": r"\(rs", "-": r"\-", "'": r"\(aq", "^": r"\(ha", "~": r"\(ti"}  # roff changes them in running text

GENERAL = (
    ("--version", main.VERSION_HELP),
    ("--install-completion", "Install completion for the shell that it is called from: bash, zsh or fish."),
    ("--show-completion", "Print the completion for that shell."),
    ("-h, --help", "Print the commands, or the options of a command, and exit."),
)
CODES = (
    ("0", "Success."),
    ("1", "An unsuccessful result; `compare` and `conform` have codes of their own beside it."),
    ("2", "A mistake in options or configuration; standard error names it. Restarting does not help."),
)
PLACES = (
    ("$STATE_DIRECTORY", "The store: access tokens and the usage ledger. Beside the configuration if not set."),
    ("--config FILE", "The configuration, in YAML. Its `env:NAME` is an environment variable, `file:PATH` a file."),
)


PAGES = {"v3bridge": "docs/v3bridge.1", "nexar-sandbox": "sandbox/nexar-sandbox.1"}


def page(program: str) -> str:
    """Return the whole page of a program."""
    return "\n".join(
        (
            f'.TH {program.upper()} 1 "" "{program} {_text(__version__)}" "User Commands"',
            ".nh",  # paths and options are not hyphenated, and their lines not stretched
            ".ad l",
            ".SH NAME",
            *(_v3bridge() if program == "v3bridge" else _sandbox()),
            ".SH SEE ALSO",
            "https://github.com/v3bridge/v3bridge#documentation",
            "",
        )
    )


def _v3bridge() -> list[str]:
    return [
        r"v3bridge \- serve the retired v3 parts API from the Nexar GraphQL API",
        ".SH SYNOPSIS",
        r"\fBv3bridge\fR \fICOMMAND\fR [\fIOPTION\fR]...",
        ".SH DESCRIPTION",
        _text(main.program().info.help or ""),
        *_section("OPTIONS", GENERAL),
        ".SH COMMANDS",
        *(_command(name, command) for name, command in command_line.commands(main.program(), "v3bridge")),
        *_section("EXIT STATUS", CODES),
        *_section("FILES AND ENVIRONMENT", PLACES),
    ]


def _sandbox() -> list[str]:
    return [
        r"nexar-sandbox \- simulate the Nexar services on this machine",
        ".SH SYNOPSIS",
        r"\fBnexar-sandbox\fR [\fIOPTION\fR]...",
        ".SH DESCRIPTION",
        _text((nexar_sandbox.__doc__ or "").split("\n\n")[0]),
        _text(inspect.getdoc(sandbox_command.sandbox) or ""),
        ".SH OPTIONS",
        *(_parameter(each) for each in command_line.parameters(sandbox_command.sandbox)),
        *_section("EXIT STATUS", (("0", "It was stopped."), CODES[-1])),
    ]


def _section(title: str, entries: tuple[tuple[str, str], ...]) -> list[str]:
    return [f".SH {title}", *(_entry(rf"\fB{_text(name)}\fR", meaning) for name, meaning in entries)]


def _command(name: str, command: object) -> str:
    assert callable(command)
    parameters = command_line.parameters(command)
    usage = " ".join(_usage(each) for each in parameters if each.is_argument)
    options = " [OPTION]..." if any(not each.is_argument for each in parameters) else ""
    paragraphs = (_text(each.replace("\n", " ")) for each in (inspect.getdoc(command) or "").split("\n\n"))
    head = [f".SS {_text(name + options)} {usage}".rstrip(), "\n.PP\n".join(paragraphs)]
    return "\n".join(head + [_parameter(each) for each in parameters])


def _usage(argument: command_line.Parameter) -> str:
    (name,) = argument.names
    return _text(name if argument.default == "required" else f"[{name}]")


def _parameter(parameter: command_line.Parameter) -> str:
    names = ", ".join(rf"\fB{_text(name)}\fR" for name in parameter.names)
    value = "" if parameter.is_argument else parameter.value.replace("`", "")
    value = rf" \fI{_text(value)}\fR" if value else ""
    default = {"": "", "required": " Required."}.get(parameter.default, f" Default: {parameter.default}.")
    return _entry(names + value, parameter.help + default)


def _entry(name: str, meaning: str) -> str:
    return f".TP\n{name}\n{_text(meaning)}"


def _text(text: str) -> str:
    """Text as roff reads it back unchanged; words in backquotes are bold."""
    escaped = "".join(SPECIAL.get(each, each if each < "\x7f" else rf"\[u{ord(each):04X}]") for each in text)
    escaped = COMMAND.sub(r"\\fB\1\\fR", escaped).replace("\n", " ")
    return rf"\&{escaped}" if escaped.startswith(".") else escaped  # such a line would be a request of roff
