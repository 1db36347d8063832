"""Page docs/v3-today.md: paths, parameters, fields with their sources, what searches support, errors and spec keys.

`python -m docs` writes it, by the template reference.md.j2; nothing of it is used in serving.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2

from proxy import errors, model
from proxy.mapping import loader
from proxy.mapping.rules import FieldRule
from proxy.planning import match, search_filters
from proxy.v3 import encoding, endpoints
from proxy.v3.endpoints import ENDPOINTS

SPECS, A_SPEC = "specs.<key>.value", "specs.resistance.value"  # support is the same for all specs
LISTS = ("Brand", "Category", "Seller")
FIRST_SENTENCE = re.compile(r"[^.;]+")
CITATION = re.compile(r" \(contract [^)]*\)")
CODE_OR_TAG = re.compile(r"(`[^`]*`)|<")
RESPONSES = {"match": "a result for each query", "search": "a page of {}", "get_multi": "object of {}", "get": "{}"}
# Of each action, with the parameters of its first endpoint; a search of parts has those of the others.
TITLES = {"match": "Match part numbers", "search": "Search", "get_multi": "Several by uid", "get": "One by uid"}


class _Table(str):
    """Rows whose cells have been escaped."""

    __slots__ = ()


def page(mappings: loader.Mappings) -> str:
    environment = jinja2.Environment(
        autoescape=False,  # noqa: S701 - it is no HTML
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value if isinstance(value, _Table) else _cell(value),
    )
    environment.filters |= {"code": _code, "joined": lambda text: " and ".join(text.rsplit(", ", 1))}
    specs = search_filters.field_support(mappings.tables, A_SPEC)
    # By their names, in reading order: each is followed by those in its fields.
    objects: dict[str, tuple[str | None, list[str], dict[str, str]]] = {}
    waiting = ["Part", *mappings.rules]
    while waiting:
        name = waiting.pop(0)
        if name not in objects:
            fields = mappings.rules[name].fields
            noted = {field: note for field, rule in fields.items() if (note := _note(rule))}
            objects[name] = mappings.rules[name].class_, [field for field in fields if field not in noted], noted
            waiting[:0] = [rule.target for rule in fields.values() if rule.target]
    groups = (
        (title, action, [each for each in ENDPOINTS if each.action == action]) for action, title in TITLES.items()
    )
    text = environment.get_template("reference.md.j2").render(
        table=_table,
        encoding=encoding,
        v3=endpoints,
        match=match,
        model=model,
        endpoints=[
            (each, RESPONSES[each.action].format(f"[{each.object}](#{each.object.lower()})")) for each in ENDPOINTS
        ],
        true_words=sorted(encoding.TRUE - {""}),
        rows=lambda parameters: [(f"`{each.name}`", each.value, each.meaning) for each in parameters],
        groups=[(title, action, own[0].parameters, [each.path for each in own]) for title, action, own in groups],
        search_fields=mappings.tables.search | ({SPECS: specs} if specs else {}),
        specs=SPECS,
        list_fields={name: list(mappings.rules[name].fields) for name in LISTS},
        objects=objects,
        errors=_errors(),
        **_spec_keys(mappings),
    )
    return text.rstrip("\n") + "\n"


def _note(rule: FieldRule) -> str:
    """Return what there is to say of a field; nothing if it is the upstream's own, for every request and plan."""
    kind = "derived: " if rule.derived else ""
    if rule.paths is None:
        kind = "no source: " if rule.none is not None else f"always `{json.dumps(rule.always)}`: "
    needs = ["`include[]`"] * rule.include + [f"feature {rule.feature}"] * bool(rule.feature)
    reasons = "; ".join(filter(None, (rule.none, rule.derived, rule.why)))
    return "; ".join(filter(None, (*needs, kind + reasons)))


def _errors() -> list[tuple[int, str]]:
    leaves: list[type[errors.BridgeError]] = []
    kinds: list[type[errors.BridgeError]] = [errors.ClientError, errors.ServerError]
    while kinds:
        kind = kinds.pop(0)
        # A leaf is what a client can tell: the classes above it only group. An expired key is refused like another.
        known = (each for each in kind.__subclasses__() if each.__module__ == errors.__name__)
        below = [each for each in known if each != errors.ExpiredKey]
        kinds[:0] = below
        if not below:
            leaves.append(kind)
    leaves += [errors.UpstreamUnreadable, errors.ServerError]
    leaves.remove(errors.UpstreamLoop)  # of GraphQL paths only
    meanings: dict[int, list[str]] = {}
    for kind in leaves:
        meaning = FIRST_SENTENCE.match(CITATION.sub("", kind.__doc__ or ""))
        meanings.setdefault(kind.status, []).append(f"{meaning[0]}." if meaning else "")
    return [(status, " ".join(texts)) for status, texts in sorted(meanings.items())]


def _spec_keys(mappings: loader.Mappings) -> dict[str, Any]:
    names = mappings.tables.specs.names
    known = mappings.tables.v3_specs
    sources: dict[
        str, tuple[str, str]
    ] = {}  # attributes that a key is read from, and other keys that are not their names
    for key in [*known, *sorted({entry.key for entry in names.values()})]:
        entries = {shortname: entry for shortname, entry in names.items() if entry.key == key}
        read = [f"`{shortname}`" + (f" ({entry.end})" if entry.end else "") for shortname, entry in entries.items()]
        read += [
            f"`{shortname}` of parts with `{quantity}`"
            for shortname, entry in names.items()
            for quantity, beside in entry.beside.items()
            if beside == key
        ]
        others = dict.fromkeys(spelling for entry in entries.values() for spelling in entry.also if spelling != key)
        sources[key] = ", ".join(read), _code(others)
    same = {key for key, (read, also) in sources.items() if not also and read == f"`{key.replace('_', '')}`"}
    return {
        "v3_keys": len(known),
        "v3_same": [key for key in known if key in same],
        "v3_other": [(f"`{key}`", *sources[key]) for key in known if sources[key][0] and key not in same],
        "reasons": [(f"`{key}`", reason) for key, reason in known.items() if reason],
        "unsourced": [key for key, reason in known.items() if not reason and not sources[key][0]],
        "new_same": [key for key in sources if key in same and key not in known],
        "new_other": [(f"`{key}`", *sources[key]) for key in sources if key not in same and key not in known],
    }


def _code(texts: Iterable[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)


def _table(head: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return _Table("".join("| " + " | ".join(map(_cell, line)) + " |\n" for line in lines))


def _cell(text: Any) -> str:
    """Return one line of text, with pipes and tags escaped."""
    line = str(text).replace("|", "\\|").replace("\n", " ")
    # A < outside of code would begin a tag; inside it is shown as it is.
    return CODE_OR_TAG.sub(lambda match: match[1] or "\\<", line)
