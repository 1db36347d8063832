"""Printers of mapping functions in Python, JavaScript and jq."""

import keyword
import re
from typing import Any

from proxy.explain.programs.expressions import (
    Among,
    AnyNull,
    Cut,
    Elements,
    Expression,
    Filled,
    Function,
    IfEmpty,
    Setting,
)
from proxy.explain.programs.printer import Printer, bracketed, camel_case, indented, lines, quoted, record

JAVASCRIPT_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    arguments await break case catch class const continue debugger default delete do else enum eval export
    extends false finally for function if implements import in instanceof interface let new null package
    private protected public return static super switch this throw true try typeof var void while with yield
        """,
    )
)
JQ_WORDS = frozenset(
    re.findall(r"\w+", "and as def elif else end foreach if import include label module or reduce then try")
)


class PythonPrinter(Printer):
    """Prints Python. GraphQL objects are dicts."""

    def function(self, function: Function) -> str:
        body = record([f"{quoted(name)}: {self.value(value)}" for name, value in function.body.fields])
        return (
            f"def {function.name}({', '.join(map(self.variable, function.parameters))}):\n{indented(f'return {body}')}"
        )

    def literal(self, value: Any) -> str:
        match value:
            case None | bool():
                return str(value)
            case Setting(name=name):
                return self.setting(name)
            case dict():
                return bracketed("{", [f"{quoted(key)}: {self.literal(each)}" for key, each in value.items()], "}")
            case list() | tuple():
                return bracketed("[", [self.literal(each) for each in value], "]")
        return quoted(value)

    def variable(self, name: str) -> str:
        return f"{name}_" if keyword.iskeyword(name) else name

    def field(self, of: str, name: str) -> str:
        return f"{of}[{quoted(name)}]"

    def call(self, name: str, arguments: list[str]) -> str:
        return bracketed(f"{name}(", arguments, ")")

    def choice(self, test: str, value: str, otherwise: str) -> str:
        return lines([value, f"if {test}", f"else {otherwise}"], "(", ")")

    def elements(self, elements: Elements) -> str:
        entry = self.text(elements.entry)
        if elements.key is not None:
            entry = f"{self.text(elements.key)}: {entry}"
        if elements.rank is not None:
            entry = bracketed("(", [self.text(elements.rank), entry], ")")
        clauses = [f"for {self.variable(each.variable)} in {self.text(each.values)}" for each in elements.loops]
        clauses += [f"if {self.text(each)}" for each in elements.tests]
        opening, closing = ("{", "}") if elements.key is not None else ("[", "]")
        if elements.rank is not None:
            opening, closing = "ranked(", ")"
        return lines([entry, *clauses], opening, closing)

    def special(self, expression: Expression) -> str:
        match expression:
            case AnyNull(values=values):
                return " or ".join(f"{self.text(each)} is None" for each in values)
            case Filled(value=value):
                return self.text(value)
            case Among(value=value, texts=[text], negated=negated):
                return f"{self.text(value)} {'!=' if negated else '=='} {quoted(text)}"
            case Among(value=value, texts=texts, negated=negated):
                return f"{self.text(value)} {'not in' if negated else 'in'} {self.literal(texts)}"
            case IfEmpty(first=first, second=second):
                return f"{self.text(first)} or {self.text(second)}"
            case Cut(values=values, start=start, stop=stop):
                return f"{self.text(values)}[{_bound(start)}:{_bound(stop)}]"
        raise NotImplementedError(f"no Python for {expression}")


class JavaScriptPrinter(Printer):
    """Prints JavaScript."""

    def function(self, function: Function) -> str:
        fields = [_property(name, self.value(value)) for name, value in function.body.fields]
        body = record(fields, step=2, pad=" ")
        head = f"function {camel_case(function.name)}({', '.join(map(self.variable, function.parameters))})"
        return f"{head} {{\n{indented(f'return {body};', 2)}\n}}"

    def literal(self, value: Any) -> str:
        match value:
            case Setting(name=name):
                return self.setting(name)
            case dict():
                fields = [f"{_key(key)}: {self.literal(each)}" for key, each in value.items()]
                return bracketed("{", fields, "}", step=2, pad=" " if fields else "")
            case list() | tuple():
                return bracketed("[", [self.literal(each) for each in value], "]", step=2)
        return quoted(value)

    def variable(self, name: str) -> str:
        name = camel_case(name)
        return f"{name}_" if name in JAVASCRIPT_WORDS else name

    def field(self, of: str, name: str) -> str:
        return f"{of}.{name}"

    def call(self, name: str, arguments: list[str]) -> str:
        return bracketed(f"{camel_case(name)}(", arguments, ")", step=2)

    def choice(self, test: str, value: str, otherwise: str) -> str:
        return lines([test, f"? {value}", f": {otherwise}"], "(", ")", step=2)

    def default(self, value: Expression, default: Expression) -> str:
        return f"({self.text(value)} ?? {self.text(default)})"

    def elements(self, elements: Elements) -> str:
        entry = self.text(elements.entry)
        pair = elements.key if elements.key is not None else elements.rank
        if pair is not None:
            entry = bracketed("[", [self.text(pair), entry], "]", step=2)
        *outer, inner = elements.loops
        tests = " && ".join(self.text(each) for each in elements.tests)
        chain = (
            self._chained(self.text(inner.values), "filter", inner.variable, tests)
            if tests
            else self.text(inner.values)
        )
        listed = self._chained(chain, "map", inner.variable, entry)
        for loop in reversed(outer):
            listed = self._chained(self.text(loop.values), "flatMap", loop.variable, listed)
        if elements.key is not None:
            return bracketed("Object.fromEntries(", [listed], ")", step=2)
        return bracketed("ranked(", [listed], ")", step=2) if elements.rank is not None else listed

    def _chained(self, values: str, method: str, variable: str, body: str) -> str:
        return bracketed(f"{values}.{method}(", [f"({self.variable(variable)}) => {body}"], ")", step=2)

    def special(self, expression: Expression) -> str:
        match expression:
            case AnyNull(values=values):
                return " || ".join(f"{self.text(each)} === null" for each in values)
            case Filled(value=value):
                return self.text(value)
            case Among(value=value, texts=[text], negated=negated):
                return f"{self.text(value)} {'!==' if negated else '==='} {quoted(text)}"
            case Among(value=value, texts=texts, negated=negated):
                return f"{'!' * negated}{self.literal(texts)}.includes({self.text(value)})"
            case IfEmpty(first=first, second=second):
                lists = bracketed("[", [self.text(first), self.text(second)], "]", step=2)
                return f"{lists}.find((list) => list.length > 0) ?? []"
            case Cut(values=values, start=start, stop=stop):
                bounds = [str(start or 0), *([] if stop is None else [str(stop)])]
                return f"{self.text(values)}.slice({', '.join(bounds)})"
        raise NotImplementedError(f"no JavaScript for {expression}")


class JqPrinter(Printer):
    """Prints jq. All arguments are variables, so that no function depends on its input `.`."""

    def function(self, function: Function) -> str:
        # With brackets around conditions: jq 1.6 demands them in objects.
        fields = [f"{_key(name)}: {self.text(value)}" for name, value in function.body.fields]
        head = self.call(function.name, list(map(self.variable, function.parameters)))
        return f"def {head}:\n{indented(f'{record(fields, step=2, trailing=str())};', 2)}"

    def literal(self, value: Any) -> str:
        match value:
            case Setting(name=name):
                return self.setting(name)
            case dict():
                fields = [f"{quoted(key)}: {self.literal(each)}" for key, each in value.items()]
                return bracketed("{", fields, "}", trailing="", step=2)
            case list() | tuple():
                return bracketed("[", [self.literal(each) for each in value], "]", trailing="", step=2)
        return quoted(value)

    def variable(self, name: str) -> str:
        return f"${name}_" if name in JQ_WORDS else f"${name}"

    def setting(self, name: str) -> str:
        return f"${name}"

    def field(self, of: str, name: str) -> str:
        return f"{of}.{name}"

    def call(self, name: str, arguments: list[str]) -> str:
        # jq has no empty brackets.
        return bracketed(f"{name}(", arguments, ")", separator=";", trailing="", step=2) if arguments else name

    def choice(self, test: str, value: str, otherwise: str) -> str:
        return lines([f"if {test}", f"then {value}", f"else {otherwise}", "end"], "(", ")", step=2)

    def elements(self, elements: Elements) -> str:
        entry = self.text(elements.entry)
        if elements.key is not None:
            fields = [f"key: {self.text(elements.key)}", f"value: {entry}"]
            entry = bracketed("{", fields, "}", trailing="", step=2)
        if elements.rank is not None:
            entry = bracketed("[", [self.text(elements.rank), entry], "]", trailing="", step=2)
        steps = [f"{self.text(each.values)}[] as {self.variable(each.variable)} |" for each in elements.loops]
        steps += [f"select({self.text(each)}) |" for each in elements.tests]
        listed = lines([*steps, entry], "[", "]", step=2)
        if elements.key is not None:
            return f"({listed} | from_entries)"
        return f"({listed} | ranked)" if elements.rank is not None else listed

    def special(self, expression: Expression) -> str:
        match expression:
            case AnyNull(values=values):
                return " or ".join(f"{self.text(each)} == null" for each in values)
            case Filled(value=value):
                return f"{self.text(value)} | filled"
            case Among(value=value, texts=texts, negated=negated):
                test = f"IN({', '.join(map(quoted, texts))})" if texts else "false"
                return f"{self.text(value)} | {test}{' | not' * negated}"
            case IfEmpty(first=first, second=second):
                return f"({self.text(first)} | if length > 0 then . else {self.text(second)} end)"
            case Cut(values=values, start=start, stop=stop):
                return f"{self.text(values)}[{_bound(start) or '0'}:{_bound(stop)}]"
        raise NotImplementedError(f"no jq for {expression}")


def _property(name: str, value: str) -> str:
    """Return a property of an object in JavaScript, where a variable of the same name needs no colon."""
    return name if name == value else f"{_key(name)}: {value}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else quoted(name)


def _bound(number: int | None) -> str:
    return "" if number is None else str(number)
