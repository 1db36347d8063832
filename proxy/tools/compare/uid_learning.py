"""`v3bridge compare --learn-uids`: a table of v3 uids for the setting `uids`, from responses of the old service.

An object is identified by its own id, as sellers are, else by its name.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import typer

from proxy.config import loader
from proxy.kit import counted, printable, shipped
from proxy.mapping import loader as mapping
from proxy.mapping.transforms import KINDS, KnownUid, Uids, source_uids
from proxy.tools.compare.judging import json_values, unknown_uids
from proxy.traffic.recordings import Recording

NOBODY = str(2**40 - 1)  # an id that no object has
SHOWN = 20  # conflicts that are printed
_UID = re.compile(r"[0-9a-f]{16}")
_ID = re.compile(r"[0-9]{1,12}")

ObjectKey = tuple[str, str, str]  # kind, uid, and of sources, which share uids, the name
Seen = set[tuple[str, str | None]]  # names of an object, with its id where known


class LearnedUids(NamedTuple):
    """Result: new `lines` by kind, and `conflicts`, the descriptions of ambiguous uids and objects."""

    lines: dict[str, list[KnownUid]]
    known: int
    conflicts: list[str]


def learn(recording: Path, config_file: Path | None) -> None:
    """Print a table of the uids of brands, manufacturers, sellers, categories and sources in recorded responses; counts
    go to standard error."""
    own = loader.load(config_file, os.environ).uids if config_file else None
    known = mapping.load_uids(shipped("mappings"), Path(own) if own else None)
    recorded = Recording(recording)
    bodies, skipped = list[Any](), recorded.unreadable
    for request in recorded.requests.values():
        response = recorded.response(request)
        body = json_values.parse(response) if response and response.status < 400 else None
        if body is None or body.problem:
            skipped += 1
        else:
            bodies.append(body.value)
    recorded.close()
    learned = learned_uids(bodies, known)
    if learned.lines:
        typer.echo(
            f"# v3 uids, learnt from {_quoted(recording.name)} by v3bridge compare. Setting `uids`: docs/connect.md."
        )
    for kind, entries in learned.lines.items():
        typer.echo(f"{kind}:")
        for entry in entries:
            also = f", also: [{', '.join(map(_quoted, entry.also))}]" if entry.also else ""
            number = f', id: "{entry.id}"' if entry.id else ""
            typer.echo(f'  - {{uid: "{entry.uid}", name: {_quoted(entry.name)}{also}{number}, source: learnt}}')
    if skipped:
        lines = counted(skipped, "line is", "lines are")
        typer.echo(f"{lines} skipped: no response, an error, or no JSON", err=True)
    for conflict in learned.conflicts[:SHOWN]:
        typer.echo(printable(conflict), err=True)
    new = sum(map(len, learned.lines.values()))
    counts = f"{new} learnt, {learned.known} already known, {len(learned.conflicts)} conflicting"
    typer.echo(f"uids: {counts}.", err=True)


def learned_uids(bodies: Iterable[Any], known: Mapping[str, Uids]) -> LearnedUids:
    """Return the uids in bodies of responses that are not `known` by kind."""
    seen: defaultdict[ObjectKey, Seen] = defaultdict(set)
    for body in bodies:
        for kind, uid, name, number in _objects(body):
            seen[kind, uid, name if kind == "Source" else ""].add((name, number))
    learned: dict[ObjectKey, KnownUid] = {}
    conflicts: dict[ObjectKey, str] = {}  # uids of several objects, and objects with several uids
    of_object: defaultdict[tuple[str, str], list[ObjectKey]] = defaultdict(list)
    for key, values in sorted(seen.items()):
        names, ids = sorted({name for name, _ in values}), sorted({number for _, number in values if number})
        learned[key] = KnownUid(key[1], names[0], ids[0] if ids else None, tuple(names[1:]), source="learnt")
        if len(ids) > 1:
            conflicts[key] = f"{key[0]} uid {key[1]} is of the ids {', '.join(ids)}"
        of_object[key[0], learned[key].id or names[0].casefold()].append(key)
    for (kind, shown), keys in of_object.items():
        if len(keys) > 1:
            uids = ", ".join(uid for _, uid, _ in keys)
            conflicts |= dict.fromkeys(keys, f"{kind} {shown} has the uids {uids}")
    sources = source_uids(known)
    lines: dict[str, list[KnownUid]] = {}
    recorded = 0
    for (kind, uid, _), line in ((key, line) for key, line in learned.items() if key not in conflicts):
        sent = sources.get(line.name.casefold()) if kind == "Source" else known[kind].uid(line.id or NOBODY, line.name)
        if sent == uid:
            recorded += 1
        else:
            lines.setdefault(kind, []).append(line)
    return LearnedUids(lines, recorded, list(conflicts.values()))


def _objects(value: Any, within: str = "") -> Iterator[tuple[str, str, str, str | None]]:
    """Yield kind, uid, name and id of all objects in a body, and of the ancestors that categories name."""
    if type(value) is list:
        for each in value:
            yield from _objects(each, within)
    if type(value) is not dict:
        return
    kind = value.get("__class__") or unknown_uids.OBJECTS.get(within)
    if kind in KINDS:
        names, uids = value.get("ancestor_names") or [], value.get("ancestor_uids") or []
        above = zip(uids, names, strict=False) if type(names) is type(uids) is list else ()
        for uid, name in ((value.get("uid"), value.get("name")), *above):
            if type(uid) is str and _UID.fullmatch(uid) and type(name) is str and name.strip():
                number = value.get("id") if kind == "Seller" else None
                yield kind, uid, name, number if type(number) is str and _ID.fullmatch(number) else None
    for key, below in value.items():
        yield from _objects(below, key)


def _quoted(text: str) -> str:
    """Quote as YAML in double quotes. A lone surrogate, which UTF-8 cannot encode, becomes a question mark."""
    sound = text.encode("utf-8", "replace").decode()
    return json.dumps(sound, ensure_ascii=not sound.isprintable())
