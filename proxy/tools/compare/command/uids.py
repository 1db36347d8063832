"""`v3bridge compare --learn-uids`: a table of v3 uids, for the setting `uids`."""

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import typer

from proxy.config import loader
from proxy.kit import clock, shipped
from proxy.kit.wording import counted
from proxy.mapping import loader as mapping
from proxy.mapping.uids import Uids
from proxy.tools.compare import uid_learning
from proxy.tools.compare.command import options, requests_to_send
from proxy.traffic import v3_response
from proxy.traffic.recording import recorded, recorder

SHOWN = 20  # conflicts that are printed
EXCLUDED = ("baseline", "candidate", "requests", "record")  # options of a comparison


def learn(chosen: options.ComparisonOptions, recording: Path) -> None:
    """Print a table of the uids of brands, manufacturers, sellers, categories and sources in recorded responses."""
    for name in EXCLUDED:
        if getattr(chosen, name):
            raise typer.BadParameter("--learn-uids reads a recording, and sends nothing", param_hint=f"--{name}")
    own = loader.load(chosen.config, os.environ).uids if chosen.config else None
    known = mapping.load_uids(shipped.path("mappings"), Path(own) if own else None)
    answers = recorded.Recording(recording, clock.SystemClock().now())
    unusable: Counter[str] = Counter()
    try:
        learned = _learnt(answers, known, unusable)
    finally:
        answers.close()
    if learned.learnt:
        typer.echo(_table(learned, recording.name), nl=False)
    _lines(requests_to_send.recording_notes(answers))
    _lines(f"{counted(number, 'response')} of the old service {reason}" for reason, number in unusable.most_common())
    _say(learned)


def _learnt(answers: recorded.Recording, known: dict[str, Uids], unusable: Counter[str]) -> uid_learning.LearnedUids:
    """Learn uids from all recorded responses of a file; count the responses of which nothing can be learnt."""
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


def _reason(recorded_response: recorder.RecordedResponse, body: v3_response.ResponseBody | None) -> str:
    """Return why nothing can be learnt from a response, worded to complete "a response …"."""
    if body is not None and body.problem and recorded_response.status < 400:
        return f"skipped: {body.problem}"
    suffix = v3_response.message_suffix(recorded_response.response())
    return f"skipped: it is an error (HTTP {recorded_response.status}){suffix}"


def _table(learned: uid_learning.LearnedUids, source: str) -> str:
    lines = [f"# v3 uids, learnt from {_quoted(source)} by v3bridge compare. Setting `uids`: docs/how-to/connect.md."]
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


def _say(learned: uid_learning.LearnedUids) -> None:
    """Print the counts to standard error: the table is on standard output."""
    counts = (
        (learned.learnt, "learnt"),
        (learned.known, "already known"),
        (len(learned.conflicts), "conflicting"),
        (learned.unmatched, "not matched"),
    )
    _lines(learned.conflicts[:SHOWN])
    if len(learned.conflicts) > SHOWN:
        _lines([f"and {len(learned.conflicts) - SHOWN} more conflicts"])
    _lines([f"uids: {', '.join(f'{number} {what}' for number, what in counts)}."])


def _lines(texts: Iterable[str]) -> None:
    for text in texts:
        typer.echo(text if text.isprintable() else repr(text), err=True)
