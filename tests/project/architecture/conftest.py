"""The tree as the architecture tests see it: Python modules, and every text file that the project keeps."""

import ast
import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Module:
    """One Python file of the project; `path` is relative to the top, with forward slashes."""

    path: str
    text: str

    @property
    def top_folder(self) -> str:
        """The first folder of the path: proxy, bench, docs or tests."""
        return self.path.split("/", 1)[0]

    @property
    def length(self) -> int:
        """Lines, blank ones and comments too."""
        return len(self.text.splitlines())

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the syntax tree, the module itself first."""
        return tuple(ast.walk(ast.parse(self.text, self.path)))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def kept_files() -> tuple[Path, ...]:
    """Every file that the project keeps. Asks .gitignore, not git: a tarball has no repository."""
    return tuple(sorted(_kept(ROOT, _ignored_folders())))


@pytest.fixture(scope="session")
def kept_texts(kept_files: tuple[Path, ...]) -> dict[str, str]:
    """The same files as text, by path relative to the top; what is not UTF-8 is left out."""
    return {_relative(path): text for path in kept_files if (text := _text(path)) is not None}


@pytest.fixture(scope="session")
def modules(kept_texts: dict[str, str]) -> tuple[Module, ...]:
    """Every Python file of the project."""
    return tuple(Module(path, text) for path, text in kept_texts.items() if path.endswith(".py"))


@pytest.fixture(scope="session")
def service_modules(modules: tuple[Module, ...]) -> tuple[Module, ...]:
    """The Python files of proxy/ and sandbox/ only: what is shipped."""
    return tuple(module for module in modules if module.top_folder in ("proxy", "sandbox"))


def _ignored_folders() -> list[str]:
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    return [".git", *(line.rstrip("/") for line in lines)]


def _kept(folder: Path, ignored: list[str]) -> Iterator[Path]:
    for entry in folder.iterdir():
        names = entry.name, _relative(entry)
        if any(fnmatch.fnmatch(name, pattern) for name in names for pattern in ignored):
            continue
        if entry.is_dir():
            yield from _kept(entry, ignored)
        else:
            yield entry


def _relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
