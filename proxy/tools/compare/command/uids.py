"""`v3bridge uids`: tables of v3 uids, for the setting `uids`."""

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proxy import errors
from proxy.config import loader
from proxy.kit import clock, shipped
from proxy.kit.wording import counted

if TYPE_CHECKING:
    from proxy.mapping.uids import Uids
    from proxy.tools.compare import uid_learning
    from proxy.traffic import v3_response
    from proxy.traffic.recording import recorded, recorder

SHOWN = 20  # conflicts that are printed

app = typer.Typer(help="Tables of v3 uids.", no_args_is_help=True)


@app.callback()
def _uids() -> None:
    """Make `learn` a subcommand: typer would run a single command without its name."""


@app.command("learn")
def learn(
    recording: Annotated[
        Path, typer.Argument(help="A recording of v3bridge, or JSON lines of old responses: url, status, body.")
    ],
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the table goes; standard output if omitted.")
    ] = None,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="A configuration whose table of uids is known already.")
    ] = None,
) -> None:
    """Write a table of the uids of brands, manufacturers, sellers, categories and sources in recorded responses."""
    from proxy.mapping import loader as mapping
    from proxy.tools.compare.command import requests_to_send
    from proxy.traffic.recording import recorded

    if output is not None and output.exists():
        raise errors.ConfigError(f"{output} exists already: name another file")
    own = loader.load(config_file, os.environ).uids if config_file else None
    known = mapping.load_uids(shipped.path("mappings"), Path(own) if own else None)
    answers = recorded.Recording(recording, clock.SystemClock().now())
    unusable: Counter[str] = Counter()
    try:
        learned = _learnt(answers, known, unusable)
    finally:
        answers.close()
    if learned.learnt:
        _write(_table(learned, recording.name), output)
    _lines(requests_to_send.recording_notes(answers))
    _lines(f"{counted(number, 'response')} of the old service {reason}" for reason, number in unusable.most_common())
    _say(learned, output)


def _learnt(
    answers: "recorded.Recording", known: "dict[str, Uids]", unusable: Counter[str]
) -> "uid_learning.LearnedUids":
    """Learn uids from all recorded responses of a file; count the responses of which nothing can be learnt."""
    from proxy.tools.compare import uid_learning
    from proxy.traffic import v3_response

    learner, both = uid_learning.UidLearner(known), False
    for request in answers.requests():
        line = answers.line(request)
        if line is None or line.baseline is None:
            continue
        baseline, candidate = (
            v3_response.read_body(request, each.response()) if each else None
            for each in (line.baseline, line.candidate)
        )
        if baseline is None or baseline.refused or baseline.problem:
            unusable[_reason(line.baseline, baseline)] += 1
            continue
        readable = candidate is not None and not candidate.refused and candidate.problem is None
        both = both or line.candidate is not None
        learner.take(baseline.document.value, candidate.document.value if candidate and readable else None)
    return learner.learnt(both=both)


def _reason(recorded_response: "recorder.RecordedResponse", body: "v3_response.ResponseBody | None") -> str:
    """Return why nothing can be learnt from a response, worded to complete "a response …"."""
    from proxy.traffic import v3_response

    if body is not None and body.problem and recorded_response.status < 400:
        return f"skipped: {body.problem}"
    suffix = v3_response.message_suffix(recorded_response.response())
    return f"skipped: it is an error (HTTP {recorded_response.status}){suffix}"


def _table(learned: "uid_learning.LearnedUids", source: str) -> str:
    lines = [
        f"# v3 uids, learnt from {_quoted(source)} by v3bridge uids learn. Setting `uids`: docs/how-to/connect.md."
    ]
    for kind, entries in learned.lines.items():
        lines.append(f"{kind}:")
        for entry in entries:
            also = f", also: [{', '.join(map(_quoted, entry.also))}]" if entry.also else ""
            number = f', id: "{entry.id}"' if entry.id else ""
            lines.append(f'  - {{uid: "{entry.uid}", name: {_quoted(entry.name)}{also}{number}, source: learnt}}')
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Quote as YAML in double quotes. A lone surrogate, which UTF-8 cannot encode, becomes a question mark."""
    sound = text.encode("utf-8", "replace").decode()
    return json.dumps(sound, ensure_ascii=not sound.isprintable())


def _write(table: str, output: Path | None) -> None:
    if output is None:
        typer.echo(table, nl=False)
        return
    try:
        output.write_text(table, encoding="utf-8")
    except OSError as error:
        raise errors.ConfigError(f"the table {output} cannot be written: {error.strerror}") from error


def _say(learned: "uid_learning.LearnedUids", output: Path | None) -> None:
    """Print the counts to standard error: the table may be on standard output."""
    counts = (
        (learned.learnt, "learnt"),
        (learned.known, "already known"),
        (len(learned.conflicts), "conflicting"),
        (learned.unmatched, "not matched"),
    )
    _lines(learned.conflicts[:SHOWN])
    if len(learned.conflicts) > SHOWN:
        _lines([f"and {len(learned.conflicts) - SHOWN} more conflicts"])
    where = f" Set uids: {output} in the configuration." if output and learned.learnt else ""
    _lines([f"uids: {', '.join(f'{number} {what}' for number, what in counts)}.{where}"])


def _lines(texts: Iterable[str]) -> None:
    for text in texts:
        typer.echo(text if text.isprintable() else repr(text), err=True)
