"""Order of a program: settings, documents, `main`, what it calls, the mapping, tables."""

import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple

from proxy.explain.changes import Addresses
from proxy.explain.programs import definitions, rows
from proxy.explain.programs.expressions import MappingProgram
from proxy.explain.programs.flows import Flow
from proxy.explain.programs.languages import JavaScriptPrinter, JqPrinter, PythonPrinter
from proxy.explain.programs.printer import Printer, camel_case, indented, quoted

MAPPING_NOTE = "v3's objects from Nexar's, field by field."
MARKET_OPTIONS = ' --arg country "$COUNTRY" --arg currency "$CURRENCY"'  # of jq, in snippets/requests.sh
LINE = 110  # characters of a line of a table


class ProgramText(NamedTuple):
    """What a program is made of. `notes` are the paragraphs at its top; `tables` are all that there are."""

    title: str
    notes: list[str]
    addresses: Addresses
    client: tuple[str, str]
    flow: Flow
    mapping: MappingProgram
    tables: dict[str, Any]


class Layout(ABC):
    """Puts a program together in one language. `language` is the ending of its definitions."""

    language: str
    printer: Printer
    step = 2  # blanks of an indentation
    first_items: tuple[str, ...] = ()  # of each table that is a dict

    def __init__(self, text: ProgramText) -> None:
        self.text = text
        self.mapping = [self.printer.function(each) for each in text.mapping.functions]

    @abstractmethod
    def program(self) -> str:
        """Return the whole program."""

    def named(self, name: str) -> str:
        """Return a name in the spelling of the language."""
        return name

    def definition(self, name: str) -> str:
        """Return a definition that the flow names, with the calls of the mapping."""
        return self._with_mapping(definitions.of_language(self.language)[self.named(name)])

    def used(self, texts: Iterable[str]) -> dict[str, str]:
        """Return the definitions that some texts use, with the calls of the mapping."""
        choices = {self.named(name): self.named(definition) for name, definition in self.text.flow.choices.items()}
        blocks = definitions.used(self.language, texts, lambda name: choices.get(name, name))
        return {name: self._with_mapping(block) for name, block in blocks.items()}

    def _with_mapping(self, block: str) -> str:
        entry = self.text.mapping.entry
        # A uid is passed where the mapping compares it with that of the part.
        if len(entry.parameters) == 1:
            block = re.sub(r"\bMAP\(([^(),;]*)[,;] [^(),;]*\)", r"MAP(\1)", block)
        return re.sub(r"\bMAP\b", self.named(entry.name), block)

    def in_order(self, blocks: dict[str, str]) -> list[str]:
        """Return definitions in the order of their files, callers first."""
        known = list(definitions.of_language(self.language))
        names = {self.named(definition): self.named(name) for name, definition in self.text.flow.choices.items()}
        places = {names.get(name, name): place for place, name in enumerate(known)}
        return [blocks[name] for name in sorted(blocks, key=places.__getitem__)]

    def constants(self, texts: Iterable[str]) -> dict[str, Any]:
        """Return the constants of the flow that some texts read."""
        read = set().union(*map(definitions.constants, texts))
        return {name: value for name, value in self.text.flow.constants.items() if name in read}

    def tables(self, texts: Iterable[str]) -> dict[str, Any]:
        """Return the tables that some texts read."""
        read = set().union(*map(definitions.constants, texts))
        return {name: rows_ for name, rows_ in self.text.tables.items() if name in read}

    def table(self, table: Any) -> str:
        """Return a table as source, in as few lines as have room for it."""
        if not isinstance(table, dict):
            return f"[\n{indented(filled(map(quoted, table)), self.step)}\n]"
        items = [f"{quoted(key)}: {self.printer.literal(value)}" for key, value in table.items()]
        return f"{{\n{indented(filled([*self.first_items, *items]), self.step)}\n}}"


class _ScriptLayout(Layout):
    """Layout of Python and JavaScript: one file in one language."""

    opening: str
    main: str
    settings: str
    constant: str
    comment: str

    def named(self, name: str) -> str:
        return name

    def body(self) -> list[str]:
        """Return the blocks behind the comment at the top."""
        main = self.definition(f"main_{self.text.flow.main}")
        main = main.replace(self.named(f"main_{self.text.flow.main}"), "main", 1)
        blocks = self.used([main, *self.mapping])
        transforms = [name for name in blocks if name in self._transforms()]
        requests = self.in_order({name: block for name, block in blocks.items() if name not in transforms})
        mapping = [*self.mapping, *self.in_order({name: blocks[name] for name in transforms})]
        mapping[0] = f"{self.comment} {MAPPING_NOTE}\n{mapping[0]}"
        functions = [main, *requests, *mapping]
        constants = self.constants(functions)
        # An operation has documents of its own.
        constants = {
            **{k: v for k, v in self.text.flow.constants.items() if re.fullmatch(r"QUERY_\d+", k)},
            **constants,
        }
        return [
            grouped(self._constant(name, value) for name, value in constants.items()),
            *functions,
            "\n\n".join(self._table(name, table) for name, table in self.tables(functions).items()),
        ]

    def market(self, assignment: str, source: str) -> str:
        """Return the assignment of country and currency, if the source reads them: lists depend on neither."""
        is_read = {"COUNTRY", "CURRENCY"} & definitions.constants(source)
        return assignment.format(*map(quoted, self.text.client)) if is_read else ""

    def _transforms(self) -> set[str]:
        file = definitions.FOLDER / f"transforms.{self.language}"
        return set(definitions.DEFINITIONS[self.language].findall(file.read_text(encoding="utf-8")))

    def _constant(self, name: str, value: Any) -> str:
        if name.startswith(("QUERY", "COUNT_QUERY")) and isinstance(value, str):
            return self.constant.format(name=name, value=self.document(value))
        return self.constant.format(name=name, value=self.printer.literal(value))

    def _table(self, name: str, table: Any) -> str:
        note = f"{self.comment} {rows.NOTES[name]}"
        return f"{note}\n{self.constant.format(name=name, value=self.table(table))}"

    @abstractmethod
    def document(self, text: str) -> str:
        """Return a GraphQL document as a text of several lines."""


class PythonLayout(_ScriptLayout):
    """Python 3.11 or newer, with its standard library."""

    language = "py"
    printer = PythonPrinter()
    step = 4
    constant = "{name} = {value}"
    comment = "#"

    def program(self) -> str:
        text = self.text
        body = self.body()
        source = "\n\n\n".join(filter(None, body))
        modules = ["json", "os", "sys", "urllib.error", "urllib.parse", "urllib.request"]
        modules += [name for name in ("hashlib", "re") if f"{name}." in source]
        imports = [f"import {name}" for name in sorted(modules)]
        if "datetime." in source:
            imports.insert(0, "from datetime import UTC, datetime")
            imports.sort(key=lambda line: (line.startswith("from"), line))
        graphql_url, token_url, scope = map(quoted, text.addresses)
        head = [
            f'#!/usr/bin/env python3\n"""{text.title}\n\n'
            "    NEXAR_CLIENT_ID=… NEXAR_CLIENT_SECRET=… python3 this_file.py\n\n"
            'It needs nothing but Python 3.11 or newer.\n"""',
            comments("#", text.notes),
            "\n".join(imports),
            f'GRAPHQL_URL = os.environ.get("NEXAR_GRAPHQL_URL", {graphql_url})\n'
            f'TOKEN_URL = os.environ.get("NEXAR_TOKEN_URL", {token_url})\n'
            f"SCOPE = {scope}" + self.market("\nCOUNTRY, CURRENCY = {}, {}", source),
        ]
        return "\n\n".join(head) + "\n\n" + source + '\n\n\nif __name__ == "__main__":\n    main()\n'

    def document(self, text: str) -> str:
        return quoted(text) if '"""' in text or "\\" in text else f'"""\n{text}\n"""'


class JavaScriptLayout(_ScriptLayout):
    """JavaScript of Node.js 18 or newer, without packages."""

    language = "js"
    printer = JavaScriptPrinter()
    first_items = ("__proto__: null",)  # else a company called "constructor" would be in every table
    constant = "const {name} = {value};"
    comment = "//"

    def named(self, name: str) -> str:
        return camel_case(name)

    def program(self) -> str:
        text = self.text
        body = "\n\n".join(filter(None, self.body()))
        graphql_url, token_url, scope = map(quoted, text.addresses)
        usage = [
            "Usage: NEXAR_CLIENT_ID=… NEXAR_CLIENT_SECRET=… node this_file.js",
            "It needs nothing but Node.js 18 or newer.",
        ]
        head = [
            "#!/usr/bin/env node\n" + comments("//", [text.title, *usage, *text.notes]),
            '"use strict";',
            f"const GRAPHQL_URL = process.env.NEXAR_GRAPHQL_URL || {graphql_url};\n"
            f"const TOKEN_URL = process.env.NEXAR_TOKEN_URL || {token_url};\n"
            f"const SCOPE = {scope};" + self.market("\nconst [COUNTRY, CURRENCY] = [{}, {}];", body),
        ]
        return "\n\n".join([*head, body, "main();"]) + "\n"

    def document(self, text: str) -> str:
        return quoted(text) if "`" in text or "\\" in text else f"`\n{text}\n`"


class CurlLayout(Layout):
    """A script for the shell, with curl and jq."""

    language = "jq"
    printer = JqPrinter()

    def program(self) -> str:
        text = self.text
        name = text.flow.main
        shell = definitions.of_language("sh")
        main_name = f"main_{name}" if f"main_{name}" in shell else "main_one"
        main = shell[main_name].replace(main_name, "main").replace("RESPONSE", f"response_{name}")
        operations = text.flow.constants.get("OPERATIONS", [])
        calls = [
            f'graphql "{self._shell_name(each["query"])}" "$VARIABLES_{number}"'
            for number, each in enumerate(operations, 1)
        ]
        main = main.replace("EACH_OPERATION", " &&\n    ".join(calls))
        functions = definitions.used("sh", [main])
        ordered = [functions[name] for name in sorted(functions, key=list(shell).index)]
        documents, jq = self._documents(), self._functions()
        market = f"\nCOUNTRY={text.client[0]}\nCURRENCY={text.client[1]}"
        if not any("$country" in source or "$currency" in source for source in (*documents, jq)):
            # Lists depend on neither.
            market, ordered = "", [block.replace(MARKET_OPTIONS, "") for block in ordered]
        graphql_url, token_url, scope = text.addresses
        usage = [
            "Usage: NEXAR_CLIENT_ID=… NEXAR_CLIENT_SECRET=… sh this_file.sh",
            "It needs curl 7.76 and jq 1.6, or newer.",
        ]
        head = [
            "#!/bin/sh\n" + comments("#", [text.title, *usage, *text.notes]),
            "set -eu",
            f"GRAPHQL_URL=${{NEXAR_GRAPHQL_URL:-{_word(graphql_url)}}}\n"
            f"TOKEN_URL=${{NEXAR_TOKEN_URL:-{_word(token_url)}}}\n"
            f"SCOPE={_word(scope)}{market}",
        ]
        v3 = "# The functions that make v3's response, in jq.\n" + _heredoc("V3", "JQ", jq)
        return "\n\n".join([*head, *documents, main, *ordered, v3, "main"]) + "\n"

    def _documents(self) -> list[str]:
        """Return the documents and their variables; the latter as jq, which knows country and currency."""
        constants = self.text.flow.constants
        texts = []
        for name, value in constants.items():
            if name.startswith(("QUERY", "COUNT_QUERY")) and isinstance(value, str):
                texts.append(_heredoc(name, "GRAPHQL", value))
            elif name.endswith("VARIABLES"):
                texts.append(_heredoc(name, "JSON", self.printer.literal(value)))
        if "LIST" in constants:
            texts.append("VARIABLES='{}'")
        for number, each in enumerate(constants.get("OPERATIONS", []), 1):
            texts.append(_heredoc(f"VARIABLES_{number}", "JSON", self.printer.literal(each["variables"])))
        return texts

    def _shell_name(self, document: Any) -> str:
        return f"${document.name.upper()}"

    def _functions(self) -> str:
        """Return the jq functions: callees first, because jq demands it."""
        before = self.used(self.mapping)
        *callees, entry = reversed(self.mapping)
        mapping = [*callees, f"# {MAPPING_NOTE}\n{entry}"]
        response = self.definition(f"response_{self.text.flow.main}")
        # Where matches may have to be counted, the shell asks for that first.
        entries = [response] if self.text.flow.main != "match_number" else [self.definition("needs_count"), response]
        after = {name: block for name, block in self.used(entries).items() if name not in before}
        functions = [*before.values(), *mapping, *(each for each in after.values() if each not in entries), *entries]
        constants = grouped(
            f"def {name}: {self.printer.literal(value)};" for name, value in self.constants(functions).items()
        )
        tables = [
            f"# {rows.NOTES[name]}\ndef {name}: {self.table(table)};" for name, table in self.tables(functions).items()
        ]
        return "\n\n".join(filter(None, [constants, *tables, *functions]))


LAYOUTS: dict[str, type[Layout]] = {"python": PythonLayout, "javascript": JavaScriptLayout, "curl": CurlLayout}


def comments(mark: str, paragraphs: Iterable[str]) -> str:
    """Return paragraphs as lines of a comment. A request is broken between its parameters."""
    lines = [line for text in paragraphs for line in textwrap.wrap(text.replace("&", "& "), LINE)]
    return "\n".join(f"{mark} {line.replace('& ', '&')}" for line in lines)


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


def _heredoc(name: str, mark: str, text: str) -> str:
    """Assign a text to a variable of the shell as it is: nothing in it is expanded."""
    return f"{name}=$(cat <<'{mark}'\n{text}\n{mark}\n)"


def _word(text: str) -> str:
    """Return a text between quotes of the shell."""
    return "'" + text.replace("'", "'\\''") + "'"
