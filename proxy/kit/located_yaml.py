"""YAML documents with the line and column of each value, for error messages, which quote no values.

Reads the safe subset with the scalars of YAML 1.2: `NO` and `on` are strings, dates are strings, a number has no
leading zero, a fraction needs its point.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

Trail = tuple[str | int, ...]


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """SafeLoader with the plain scalars of YAML 1.2, which finds keys that are given twice."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  (the base class declares it so)
    duplicates: list[tuple[yaml.Mark, str]]

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        first: dict[str, yaml.ScalarNode] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                problem = "a key must be a word, not a list or a block"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            earlier = first.setdefault(key.value, key)
            if earlier is not key:
                line = earlier.start_mark.line + 1
                self.duplicates.append((key.start_mark, f"the key {key.value} was already given in line {line}"))
        return cast(dict[Any, Any], super().construct_mapping(node, deep))


for _tag, _pattern, _first in (
    ("null", r"~|null|", ["~", "n", ""]),
    ("bool", r"true|false", list("tf")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    ("float", r"[-+]?[0-9]+\.[0-9]+(?:[eE][-+]?[0-9]+)?", list("-+0123456789")),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)


@dataclass(frozen=True, slots=True)
class LocatedYaml:
    """Document as plain Python `data`, with the position of each of its values; of duplicate keys the last."""

    data: Any
    name: str
    root: yaml.Node | None
    duplicates: Sequence[tuple[int, str]] = ()  # where duplicate keys are (in characters), and messages about them

    def place(self, path: Trail) -> str:
        """Return `config.yaml:12:5` of the value at `path`, or of the nearest parent that is in the file."""
        return _at(self.name, self.mark(path))

    def mark(self, path: Trail) -> yaml.Mark | None:
        """Return the mark of the value at `path`, or of the nearest parent; None in an empty file."""
        node, mark = self.root, None if self.root is None else self.root.start_mark
        for step in path:
            if isinstance(node, yaml.MappingNode):  # a child has the position of its key
                found = [pair for pair in node.value if pair[0].value == str(step)]
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
                found = [(each, each) for each in node.value[step : step + 1]]
            else:
                break
            if not found:
                break
            label, node = found[-1]
            mark = label.start_mark
        return mark


def load(file: Path, mistake: type[Exception] = ValueError, *, all_mistakes: bool = False) -> LocatedYaml:
    """Read a file with one document. Raises `mistake` if it is unreadable, not YAML, or has a duplicate key, which is
    left to a caller who looks for `all_mistakes`."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise mistake(f"{file}: is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise mistake(f"{file}: cannot be read: {error.strerror}") from error
    return loads(text, file.name, mistake, all_mistakes=all_mistakes)


def loads(text: str, name: str, mistake: type[Exception] = ValueError, *, all_mistakes: bool = False) -> LocatedYaml:
    """Parse text; `name` is the file name in messages."""
    try:
        loader = _Loader(text)
        loader.duplicates = []
        root = loader.get_single_node()
        # Deep: a value within itself is an error.
        data = None if root is None else loader.construct_object(root, deep=True)
    except yaml.MarkedYAMLError as error:
        problem, mark = re.sub(r" ['\"][!\w].*", "", error.problem or ""), error.problem_mark
        if error.context_mark is not None and error.context:
            problem += f", {error.context} that begins in line {error.context_mark.line + 1}"
        if mark is not None and text[mark.index : mark.index + 1] == "\t":
            problem = "a tab is not allowed here; indent with blanks"
        raise mistake(f"{_at(name, mark)}: {problem}") from None
    except yaml.reader.ReaderError as error:
        before = text.encode()[: error.position].decode("utf-8", "ignore")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise mistake(f"{name}:{line}:{column}: holds a character that YAML does not allow") from None
    except RecursionError:
        raise mistake(f"{name}: is nested too deeply") from None
    duplicates = [(mark.index, f"{_at(name, mark)}: {message}") for mark, message in loader.duplicates]
    if duplicates and not all_mistakes:
        raise mistake(duplicates[0][1])
    return LocatedYaml(data, name, root, duplicates)


def _at(name: str, mark: yaml.Mark | None) -> str:
    return name if mark is None else f"{name}:{mark.line + 1}:{mark.column + 1}"
