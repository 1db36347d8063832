"""YAML documents with the line and column of each value, for error messages.

Used for the configuration and the mapping files. Reads the safe subset with the scalars of YAML 1.2: `NO` and `on` are
strings, dates are strings, a number has no leading zero, a fraction needs its point. Error messages do not quote
values, which may be secrets.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import yaml

from proxy.kit.wording import counted

Trail = tuple[str | int, ...]
T = TypeVar("T")

_QUOTED = re.compile(r"(alias|anchor|handle|tag) ['\"].*", re.DOTALL)
_KEY = re.compile(r" *(?:- +)?([a-z_]+):(?: |$)")  # of settings: one with other characters may be an API key
# What PyYAML reports, whether the place to look is where the construct begins, and the words for it.
_WORDS = (
    (r"'\\t' that cannot start", False, "this is a tab; YAML is indented with spaces: replace it with spaces"),
    (r"that cannot start", False, "a value that begins with this character needs quotes"),
    (r"find expected ':'", True, "this line needs a colon and a space after its key, as in `port: 8080`"),
    (r"quoted scalar, found unexpected", True, "this quote is never closed"),
    (r"expected ',' or", True, "this bracket is never closed, or a comma is missing after it"),
)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


class YamlError(ValueError):
    """The file is not valid YAML. The message begins with file, line and column."""


class _Loader(yaml.SafeLoader):
    """SafeLoader with the plain scalars of YAML 1.2 that configuration files need."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  (the base class declares it so)


class _QuickLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """_Loader on libyaml, if PyYAML has it: several times as fast, with less precise error messages."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


for _tag, _pattern, _first in (
    ("null", r"~|null|", ["~", "n", ""]),
    ("bool", r"true|false", list("tf")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    ("float", r"[-+]?[0-9]+\.[0-9]+(?:[eE][-+]?[0-9]+)?", list("-+0123456789")),
    ("merge", r"<<", ["<"]),
):
    for _kind in (_Loader, _QuickLoader):
        _kind.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)


class Position(NamedTuple):
    """Line and column in a file, from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class LocatedYaml:
    """Document as plain Python `data`, with the position of each of its values. Of a duplicate key, `data` has the
    last value."""

    data: Any
    name: str
    root: yaml.Node | None
    duplicates: tuple[tuple[Position, str], ...] = ()  # positions of duplicate keys, and messages about them

    def place(self, path: Trail) -> str:
        """Return `config.yaml:12:5` of the value at `path`, or of the nearest parent that is in the file."""
        return _at(self.name, self.position(path))

    def position(self, path: Trail) -> Position | None:
        """Return the position of the value at `path`, or of the nearest parent; None in an empty file."""
        node, mark = self.root, None if self.root is None else self.root.start_mark
        for step in path:
            child = _child(node, step)
            if child is None:
                break
            label, node = child
            mark = label.start_mark
        return None if mark is None else _position(mark)

    def convert(self, kind: type[T], mistake: type[Exception], at: Trail = ()) -> T:
        """Return the value at a path as a type. Raises `mistake`, which names file and line."""
        value = self.data
        for step in at:
            value = value[step]
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            message, trail = explain(error, at)
            raise mistake(f"{self.place(trail)}: {message}") from None

    def without_duplicates(self, mistake: type[Exception]) -> "LocatedYaml":
        """Return this document. Raises `mistake` if it has a duplicate key."""
        for position, message in self.duplicates:
            raise mistake(f"{_at(self.name, position)}: {message}")
        return self


def load(file: Path, mistake: type[Exception] = YamlError) -> LocatedYaml:
    """Read a file with one document. Raises `mistake` if it is unreadable, not YAML, or has a duplicate key."""
    return read(file, mistake).without_duplicates(mistake)


def read(file: Path, mistake: type[Exception] = YamlError) -> LocatedYaml:
    """Read a file, and leave its duplicate keys to the caller, who may find more mistakes. Raises `mistake` if it is
    unreadable or not YAML."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise mistake(f"{file}: is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise mistake(f"{file}: cannot be read: {error.strerror}") from error
    return _parse(text, file.name, mistake)


def loads(text: str, name: str, mistake: type[Exception] = YamlError) -> LocatedYaml:
    """Parse text; `name` is the file name in messages."""
    return _parse(text, name, mistake).without_duplicates(mistake)


def _parse(text: str, name: str, mistake: type[Exception]) -> LocatedYaml:
    try:
        return _read(_QuickLoader(text), name, mistake)
    except yaml.YAMLError:
        return _read_slowly(text, name, mistake)


def _read(loader: Any, name: str, mistake: type[Exception]) -> LocatedYaml:
    root = loader.get_single_node()
    duplicates = tuple(_duplicates(root, name, mistake))
    return LocatedYaml(None if root is None else loader.construct_document(root), name, root, duplicates)


def _read_slowly(text: str, name: str, mistake: type[Exception]) -> LocatedYaml:
    """Parse again with the Python loader, for its error message."""
    try:
        return _read(_Loader(text), name, mistake)
    except yaml.MarkedYAMLError as error:
        mark, reason = _explained(error, text.splitlines())
        raise mistake(f"{_at(name, _position(mark) if mark else None)}: {reason}") from None
    except yaml.YAMLError:
        raise mistake(f"{name}: holds a character that YAML does not allow") from None


def explain(error: msgspec.ValidationError, at: Trail = ()) -> tuple[str, Trail]:
    """Return msgspec's message about a value converted from the path `at`, and the path of the invalid value.

    msgspec writes a key of a mapping with arbitrary keys as `[...]`; the path ends before it.
    """
    message, _, tail = str(error).rpartition(" - at `")
    if not message:
        message, tail = str(error), "$`"
    known = tail.split("`")[0].partition("[...]")[0]
    steps: Trail = tuple(name or int(index) for name, index in _STEP.findall(known))
    unknown = re.search(r"unknown field `(.+)`", message) if "[...]" not in tail else None
    return message, (*at, *steps, unknown[1]) if unknown else (*at, *steps)


def _position(mark: yaml.Mark) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def _at(name: str, position: Position | None) -> str:
    return name if position is None else f"{name}:{position.line}:{position.column}"


def _explained(error: yaml.MarkedYAMLError, lines: list[str]) -> tuple[yaml.Mark | None, str]:
    """Return where to look and what is wrong there, without values of the file, which may be secrets."""
    mark = error.problem_mark or error.context_mark
    reason = ", ".join(filter(None, (error.context, error.problem)))
    for pattern, is_at_begin, words in _WORDS:
        if re.search(pattern, reason):
            return error.context_mark if is_at_begin else mark, words
    if mark and re.search("<block end>|<block mapping start>|mapping values", reason):
        return mark, _misplaced(mark, lines)
    return mark, _QUOTED.sub(r"\1", reason)


def _misplaced(mark: yaml.Mark, lines: list[str]) -> str:
    """Return why a line does not go on with the block of the line before it: its indentation, a key in a list, a list
    item among keys, a key without a colon, or text after the value."""
    line = lines[mark.line]
    number = next((number for number in range(mark.line, 0, -1) if lines[number - 1].split("#")[0].strip()), 0)
    before = lines[number - 1] if number else ""
    key = _KEY.match(before)
    named = f"line {number} ({key[1]})" if key else f"line {number}"
    indent = _indent(line)
    # `- key: value` is a list item, and the first line of a block of keys.
    indent_before = key.start(1) if key and not line[indent:].startswith("- ") else _indent(before)
    if mark.column != indent and number and indent >= indent_before and not re.search(":( |$)", before):
        return f"{named} before this one needs a colon and a space after its key"
    # A colon is behind its key.
    if not number or (mark.column != indent and (indent <= indent_before or before.endswith(":"))):
        return "a value with `: ` in it, or with text after its quotes, must be in quotes as a whole"
    if indent == indent_before:
        return f"a list has `- ` before each item and a block of keys has none; {named} begins in the same column"
    return (
        f"this line is indented by {counted(indent, 'space')}, {named} before it by {indent_before}; "
        "lines of one block begin in the same column"
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the node that has the position of a child (of a mapping: the key), and the child."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in reversed(node.value) if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None


def _duplicates(root: yaml.Node | None, name: str, mistake: type[Exception]) -> Iterator[tuple[Position, str]]:
    """Yield duplicate keys. Visits a node once, however many aliases refer to it."""
    visited: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        # An alias is the same node, which a file may have thousands of times.
        if node is None or id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield from _duplicate_keys(node, name, mistake)
            waiting += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _duplicate_keys(node: yaml.MappingNode, name: str, mistake: type[Exception]) -> Iterator[tuple[Position, str]]:
    first: dict[str, yaml.Mark] = {}
    for key, _ in node.value:
        position = _position(key.start_mark)
        if not isinstance(key, yaml.ScalarNode):
            raise mistake(f"{_at(name, position)}: a key must be a word, not a list or a block")
        if key.value in first:
            yield position, f"the key {key.value} was already given in line {first[key.value].line + 1}"
        first.setdefault(key.value, key.start_mark)
