"""Output of `v3bridge explain --as`: one program on standard output, or one for each kind of request in a folder."""

import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from proxy.explain.explanation import ExplainedFile, Explanation
from proxy.explain.programs import program
from proxy.explain.programs.flows import NoProgramError
from proxy.kit.wording import counted

if TYPE_CHECKING:
    from proxy.explain.explainer import Explainer

ENDINGS = {"python": "py", "curl": "sh"}
NAMES_SHOWN = 3


class _Wanted(NamedTuple):
    """Program to write: the request, and how often a file has requests of its kind."""

    explanation: Explanation
    file_name: str
    occurrences: int


def show(
    explained: list[Explanation] | ExplainedFile,
    explainer: "Explainer",
    language: program.Language,
    fields: str | None,
    folder: Path | None,
) -> None:
    """Print the program of the only request, or write those of all kinds to a folder. Raises BadParameter for several
    kinds without a folder, NoProgramError, SourceError."""
    wanted = list(_wanted(explained, ENDINGS[language]))
    if folder is not None:
        _write(wanted, explainer, language, fields, folder)
    elif len(wanted) == 1:
        typer.echo(program.write(explainer, wanted[0].explanation, language, fields), nl=False)
    else:
        names = ", ".join(each.file_name for each in wanted[:NAMES_SHOWN])
        more = f" and {len(wanted) - NAMES_SHOWN} more" if len(wanted) > NAMES_SHOWN else ""
        raise typer.BadParameter(
            f"there are {len(wanted)} kinds of requests, and each is a program of its own: "
            f"name a folder for {names}{more}",
            param_hint="--output",
        )


def _wanted(explained: list[Explanation] | ExplainedFile, ending: str) -> Iterator[_Wanted]:
    """Yield what to write, with names of files such as `parts_match.py` and `parts_match_2.py`."""
    requests = (
        [(each, 1) for each in explained]
        if isinstance(explained, list)
        else [(each.example, each.occurrences) for each in explained.kinds]
    )
    numbers: Counter[str] = Counter()
    for explanation, occurrences in requests:
        name = explanation.endpoint.strip("/").replace("/", "_").replace("{uid}", "uid") or "request"
        numbers[name] += 1
        suffix = f"_{numbers[name]}" if numbers[name] > 1 else ""
        yield _Wanted(explanation, f"{name}{suffix}.{ending}", occurrences)


def _write(
    wanted: list[_Wanted], explainer: "Explainer", language: program.Language, fields: str | None, folder: Path
) -> None:
    """Write each program that there can be. Raises NoProgramError where there is none, BadParameter where the folder
    cannot be written."""
    refusals = []
    for each in wanted:
        requests = counted(each.occurrences, "request")
        try:
            text = program.write(explainer, each.explanation, language, fields)
        except NoProgramError as refusal:
            refusals.append(refusal)
            typer.echo(f"no program for {each.explanation.endpoint} ({requests}): {refusal}", err=True)
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / each.file_name
            file.write_text(text, encoding="utf-8")
            file.chmod(file.stat().st_mode | stat.S_IXUSR)  # its first line names what runs it
        except OSError as error:
            raise typer.BadParameter(f"{folder}: {error.strerror}", param_hint="--output") from error
        typer.echo(f"{file}: {each.explanation.endpoint}, {requests}")
    if len(refusals) == len(wanted):
        raise NoProgramError("there is a program for none of these requests")
