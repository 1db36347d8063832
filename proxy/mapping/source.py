"""Python source of one mapping function: a `def` for each v3 object, written from the rules and executed once.

The source is registered in linecache, so that tracebacks, profilers and debuggers show its lines. It consists of names
and constants of mapping files only, and of nothing that a client sends. A v3 object is a struct: it takes a quarter of
the time of a dict to make, and is encoded in the order of its fields.
"""

import itertools
import linecache
import re
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

_NAMES = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")  # not attributes, nor the beginnings of texts such as keys
_FILES = itertools.count(1)  # linecache is global to the process, so is the number that makes a file name unique

CLAUSE = "\n            "  # before each clause of a comprehension, which stands below its field
END = "\n        "  # before the bracket that closes it
CONTEXT = "context"
STRUCTS_MAX = 1024  # cached types of v3 objects: projections share most of theirs


class ObjectSource(NamedTuple):
    """Source of one v3 object: its `__class__`, None without, and the expressions of its fields in their order."""

    class_name: str | None
    fields: Mapping[str, str]


def snake_case(name: str) -> str:
    """Convert a name such as `PartOffer` to an identifier such as `part_offer`."""
    plain = re.sub(r"\W", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).lower()
    # no identifier begins with a digit
    return f"_{plain}" if plain[:1].isdigit() else plain


class Source:
    """Source of functions that call each other; the last one added is the entry point."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._functions: dict[str, str] = {}  # by text, so that equal functions are one
        self._structs: dict[type, str] = {}
        self._named: dict[str, int] = defaultdict(int)

    def call(self, name: str, arguments: Mapping[str, str], source: ObjectSource) -> str:
        """Return the call of a function that returns one object; `arguments` are expressions by parameter.

        A parameter that no field uses is left out.
        """
        used = {used for expression in source.fields.values() for used in _NAMES.findall(expression)}
        passed = {parameter: value for parameter, value in arguments.items() if parameter in used}
        text = self._function(name, passed, source)
        if text not in self._functions:
            self._functions[text] = self._unique(f"map_{snake_case(name)}")
        return f"{self._functions[text]}({', '.join(passed.values())})"

    def add(self, name: str, parameters: Iterable[str], source: ObjectSource) -> None:
        """Add the function that maps one record."""
        self._entry = f"map_{snake_case(name)}"
        self._functions[self._function(name, parameters, source)] = self._entry

    def text(self) -> str:
        """Return the whole source: the entry point first, called functions below their callers."""
        # Callees were added before their callers, hence reversed.
        return "\n\n".join(f"def {name}{text}" for text, name in reversed(self._functions.items()))

    def function(self, transforms: Mapping[str, Any]) -> Callable[..., Any]:
        """Compile the source and return its entry point. linecache drops the text when the function is collected."""
        text = self.text()
        file = f"<mapping {next(_FILES)} of {self._name}>"
        # Without builtins the function can reach nothing but transforms, constants and these two names.
        names = {
            **transforms,
            **dict(zip(self._structs.values(), self._structs, strict=True)),
            "sorted": sorted,
            "rank": itemgetter(0),
            "__builtins__": {},
        }
        exec(compile(text, file, "exec"), names)  # noqa: S102 - our own text
        function: Callable[..., Any] = names[self._entry]
        # None is the time of a file: linecache then checks none, and keeps the entry.
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        # Not at exit: the interpreter is being torn down then, and frees the entry anyway.
        weakref.finalize(function, linecache.cache.pop, file, None).atexit = False
        return function

    def _function(self, name: str, parameters: Iterable[str], source: ObjectSource) -> str:
        """Return the text of a function behind its name."""
        struct = _struct(name, source.class_name, tuple(source.fields))
        if struct not in self._structs:
            self._structs[struct] = self._unique(name)
        # By position, which takes a tenth of the time of keywords; comments name the fields instead.
        lines = "".join(_argument(field, expression) for field, expression in source.fields.items())
        end = "\n    )" if lines else ")"
        return f"({', '.join(parameters)}):\n    return {self._structs[struct]}({lines}{end}\n"

    def _unique(self, name: str) -> str:
        self._named[name] += 1
        return name if self._named[name] == 1 else f"{name}_{self._named[name]}"


def functions_of(text: str, name: str) -> str:
    """Return the functions in a source that map one object."""
    head = re.compile(rf"def map_{re.escape(snake_case(name))}(_\d+)?\(")
    functions = (each.rstrip("\n") + "\n" for each in text.split("\n\n\n"))
    return "\n\n".join(function for function in functions if head.match(function))


@lru_cache(STRUCTS_MAX)
def _struct(name: str, class_name: str | None, fields: tuple[str, ...]) -> type[msgspec.Struct]:
    """Return the type of a v3 object, encoded with its `__class__` first. Objects have no cycles to be collected."""
    tag_field = None if class_name is None else "__class__"
    return msgspec.defstruct(name, [(field, Any) for field in fields], tag=class_name, tag_field=tag_field, gc=False)


def _argument(field: str, expression: str) -> str:
    """Return an argument with its comment, behind the first line of an expression of several."""
    first, newline, further = expression.partition("\n")
    return f"\n        {first}  # {field}\n{further}," if newline else f"\n        {first},  # {field}"
