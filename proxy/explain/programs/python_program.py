"""A program in Python: settings, documents, `main`, what it calls, the mapping, tables, in this order."""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from proxy.explain.changes import Addresses
from proxy.explain.programs import printer, rows
from proxy.explain.programs.flows import Flow
from proxy.explain.programs.printer import indented, quoted
from proxy.mapping.transforms import TRANSFORMS

# Definitions that programs use. One is a block of lines between blank lines; a comment above belongs to it.
FOLDER = Path(__file__).parent / "snippets"
DEFINITION = re.compile(r"^def (\w+)", re.MULTILINE)
_HEAD = re.compile(r"def (\w+)\((.*)\):")
_CALL = re.compile(r"(?<![\w.])(\w+)\(")
_REFERENCE = re.compile(r"\s+\((?:contract|names of)[^)]*\)")
_CONSTANTS = re.compile(r"\b[A-Z][A-Z_]+\b")


@lru_cache
def known_definitions() -> dict[str, str]:
    """Return all definitions: those of requests, and those of transforms."""
    return _definitions("requests.py") | transforms()


@lru_cache
def transforms() -> dict[str, str]:
    return {name: _without_types(each) for name, each in TRANSFORMS.items()} | _definitions("transforms.py")


def _definitions(file: str) -> dict[str, str]:
    blocks = re.split(r"\n\n+", (FOLDER / file).read_text(encoding="utf-8").strip())
    return {head[1]: block for block in blocks if (head := DEFINITION.search(block))}


def _without_types(transform: Callable[..., Any]) -> str:
    """Return the text of a function without its types and references to the contract."""
    _, _, body = inspect.getsource(transform).rstrip().partition("\n")
    parameters = ", ".join(inspect.signature(transform).parameters)
    return f"def {transform.__name__}({parameters}):\n{_REFERENCE.sub('', body)}"


def used_definitions(texts: Iterable[str], chosen: Callable[[str], str] = str) -> dict[str, str]:
    """Return the definitions that some texts use, callees first. `chosen` maps a name to that of the definition which
    is used for it."""
    blocks: dict[str, str] = {}

    def visit(text: str) -> None:
        for name in dict.fromkeys(_CALL.findall(text)):
            definition = chosen(name)
            if definition in known_definitions() and name not in blocks:
                block = re.sub(rf"\b{definition}\b", name, known_definitions()[definition])
                blocks[name] = ""  # its place is behind what it calls; a definition may name itself
                visit(block)
                del blocks[name]
                blocks[name] = block

    for text in texts:
        visit(text)
    return blocks


def constants_in(text: str) -> set[str]:
    return set(_CONSTANTS.findall(text))


MAPPING_NOTE = "v3's objects from Nexar's, field by field."
LINE = 110  # characters of a line of a table


@dataclass(frozen=True, kw_only=True)
class PythonProgram:
    """A program for Python 3.11 or newer and its standard library. `notes` are the paragraphs at its top; `mapping` is
    the source of its mapping functions, callers first; `tables` are all that there are."""

    title: str
    notes: list[str]
    addresses: Addresses
    client: tuple[str, str]
    flow: Flow
    mapping: str
    tables: dict[str, Any]

    def source(self) -> str:
        source = "\n\n\n".join(filter(None, self._body()))
        modules = ["json", "os", "sys", "types", "urllib.error", "urllib.parse", "urllib.request"]
        modules += [name for name in ("hashlib", "re") if f"{name}." in source]
        imports = [f"import {name}" for name in sorted(modules)]
        if "datetime." in source:
            imports.append("from datetime import UTC, datetime")
        graphql_url, token_url, scope = map(quoted, self.addresses)
        # Lists depend on neither country nor currency.
        has_market = {"COUNTRY", "CURRENCY"} & constants_in(source)
        country, currency = map(quoted, self.client)
        head = [
            f'#!/usr/bin/env python3\n"""{self.title}\n\n'
            "    NEXAR_CLIENT_ID=… NEXAR_CLIENT_SECRET=… python3 this_file.py\n\n"
            'It needs nothing but Python 3.11 or newer.\n"""',
            comments(self.notes),
            "\n".join(imports),
            f'GRAPHQL_URL = os.environ.get("NEXAR_GRAPHQL_URL", {graphql_url})\n'
            f'TOKEN_URL = os.environ.get("NEXAR_TOKEN_URL", {token_url})\n'
            f"SCOPE = {scope}" + (f"\nCOUNTRY, CURRENCY = {country}, {currency}" if has_market else ""),
        ]
        return "\n\n".join(head) + "\n\n" + source + '\n\n\nif __name__ == "__main__":\n    main()\n'

    def _body(self) -> list[str]:
        """Return the blocks behind the settings."""
        name = f"main_{self.flow.main}"
        main = self._with_mapping(known_definitions()[name]).replace(name, "main", 1)
        functions_of_mapping = [each.strip() for each in self.mapping.split("\n\n\n")]
        blocks = self._used([main, *functions_of_mapping])
        used_transforms = {name: block for name, block in blocks.items() if name in transforms()}
        requests = self._in_order({name: block for name, block in blocks.items() if name not in used_transforms})
        mapping = [*functions_of_mapping, *self._in_order(used_transforms)]
        mapping[0] = f"# {MAPPING_NOTE}\n{mapping[0]}"
        functions = [main, *requests, *mapping]
        read = set().union(*map(constants_in, functions))
        constants = self.flow.constants
        # An operation has documents of its own.
        documents = {name: value for name, value in constants.items() if re.fullmatch(r"QUERY_\d+", name)}
        constants = documents | {name: value for name, value in constants.items() if name in read}
        tables = [self._table(name, table) for name, table in self.tables.items() if name in read]
        return [grouped(self._constant(*pair) for pair in constants.items()), *functions, "\n\n".join(tables)]

    def _used(self, texts: Iterable[str]) -> dict[str, str]:
        """Return the definitions that some texts use, with the calls of the mapping."""
        choices = self.flow.choices
        blocks = used_definitions(texts, lambda name: choices.get(name, name))
        return {name: self._with_mapping(block) for name, block in blocks.items()}

    def _with_mapping(self, block: str) -> str:
        name, parameters = _HEAD.findall(self.mapping)[0]
        # A uid is passed where the mapping compares it with that of the part.
        if "," not in parameters:
            block = re.sub(r"\bMAP\(([^(),]*), [^(),]*\)", r"MAP(\1)", block)
        return re.sub(r"\bMAP\b", name, block)

    def _in_order(self, blocks: dict[str, str]) -> list[str]:
        """Return definitions in the order of their files, callers first."""
        names = {definition: name for name, definition in self.flow.choices.items()}
        places = {names.get(name, name): place for place, name in enumerate(known_definitions())}
        return [blocks[name] for name in sorted(blocks, key=places.__getitem__)]

    def _constant(self, name: str, value: Any) -> str:
        is_document = name.startswith(("QUERY", "COUNT_QUERY")) and isinstance(value, str)
        if is_document and '"""' not in value and "\\" not in value:
            return f'{name} = """\n{value}\n"""'
        return f"{name} = {quoted(value) if is_document else printer.literal(value)}"

    def _table(self, name: str, table: Any) -> str:
        """Return a table with its note, in as few lines as have room for it."""
        if isinstance(table, dict):
            items = [f"{quoted(key)}: {printer.literal(value)}" for key, value in table.items()]
            opening, closing = "{", "}"
        else:
            items = [*map(quoted, table)]
            opening, closing = "[", "]"
        return f"# {rows.NOTES[name]}\n{name} = {opening}\n{indented(filled(items))}\n{closing}"


def comments(paragraphs: Iterable[str]) -> str:
    """Return paragraphs as lines of a comment. A request is broken between its parameters."""
    lines = [line for text in paragraphs for line in textwrap.wrap(text.replace("&", "& "), LINE)]
    return "\n".join(f"# {line.replace('& ', '&')}" for line in lines)


def grouped(assignments: Iterable[str]) -> str:
    """Return assignments, with a blank line around each that has several lines."""
    text, *others = [*assignments] or [""]
    is_short = "\n" not in text
    for each in others:
        was_short, is_short = is_short, "\n" not in each
        text += f"{'' if was_short and is_short else chr(10)}\n{each}"
    return text


def filled(items: Iterable[str]) -> str:
    """Return items with commas between them, in lines that are as long as allowed."""
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + len(item) > LINE - 6:
            lines.append("")
        lines[-1] += f"{item}, "
    return "\n".join(line.rstrip() for line in lines).rstrip(",")
