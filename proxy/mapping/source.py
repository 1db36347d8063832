"""Python source of one mapping function: a `def` for each v3 object, written from the rules and executed once.

The source is registered in linecache, so that tracebacks, profilers and debuggers show its lines. It consists of names
and constants of mapping files only; what a client sends is a constant by name, never text.
"""

import itertools
import linecache
import re
import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

_NAMES = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")  # not attributes, nor the beginnings of texts such as keys
_FILES = itertools.count(1)  # linecache is global to the process, so is the number that makes a file name unique

CLAUSE = "\n            "  # before each clause of a comprehension, which stands below its field
END = "\n        "  # before the bracket that closes it
CONTEXT = "context"


def snake_case(name: str) -> str:
    """Convert a name such as `PartOffer` to an identifier such as `part_offer`."""
    plain = re.sub(r"\W", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).lower()
    return f"_{plain}" if plain[:1].isdigit() else plain


class Source:
    """Source of functions that call each other; the last one added is the entry point."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._functions: dict[str, str] = {}  # by text, so that equal functions are one
        self._named: dict[str, int] = defaultdict(int)
        self._constants: dict[str, Any] = {}

    def constant(self, value: Any) -> str:
        """Return the name of a value that must not become part of the source text."""
        name = f"CONSTANT_{len(self._constants) + 1}"
        self._constants[name] = value
        return name

    def call(self, name: str, arguments: Mapping[str, str], entries: Sequence[str]) -> str:
        """Return the call of a function that returns a dict of these entries; `arguments` are expressions by
        parameter.

        A parameter that no entry uses is left out.
        """
        body = _dict_of(entries)
        used = set(_NAMES.findall(body))
        given = {parameter: value for parameter, value in arguments.items() if parameter in used}
        parameters = ", ".join(given)
        text = f"({parameters}):\n    return {body}\n"
        if text not in self._functions:
            self._functions[text] = self._unique(f"map_{snake_case(name)}")
        return f"{self._functions[text]}({', '.join(given.values())})"

    def entry_point(self, name: str, record: str, entries: Sequence[str]) -> None:
        """Add the function that maps one record in a context."""
        self._functions[f"({record}, {CONTEXT}):\n    return {_dict_of(entries)}\n"] = f"map_{snake_case(name)}"
        self._entry = f"map_{snake_case(name)}"

    def text(self) -> str:
        """Return the whole source: the entry point first, called functions below their callers."""
        return "\n\n".join(f"def {name}{text}" for text, name in reversed(self._functions.items()))

    def function(self, transforms: Mapping[str, Any]) -> Callable[..., Any]:
        """Compile the source and return its entry point. linecache drops the text when the function is collected."""
        text = self.text()
        file = f"<mapping {next(_FILES)} of {self._name}>"
        # Without builtins the function can reach nothing but transforms, constants and these two names.
        names = {**transforms, **self._constants, "sorted": sorted, "rank": itemgetter(0), "__builtins__": {}}
        exec(compile(text, file, "exec"), names)  # noqa: S102 - our own text
        function: Callable[..., Any] = names[self._entry]
        linecache.cache[file] = (
            len(text),
            None,
            text.splitlines(keepends=True),
            file,
        )  # None: there is no file to check
        weakref.finalize(function, linecache.cache.pop, file, None).atexit = False
        return function

    def _unique(self, name: str) -> str:
        self._named[name] += 1
        return name if self._named[name] == 1 else f"{name}_{self._named[name]}"


def functions_of(text: str, name: str) -> str:
    """Return the functions in a source that map one object."""
    head = re.compile(rf"def map_{re.escape(snake_case(name))}(_\d+)?\(")
    functions = (each.rstrip("\n") + "\n" for each in text.split("\n\n\n"))
    return "\n\n".join(function for function in functions if head.match(function))


def _dict_of(entries: Sequence[str]) -> str:
    return "{" + "".join(f"\n        {entry}," for entry in entries) + ("\n    }" if entries else "}")
