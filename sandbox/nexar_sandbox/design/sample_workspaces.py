"""Sample workspaces and projects of a new sandbox, read from sample_workspaces.toml."""

from pathlib import Path
from typing import NamedTuple

import msgspec


class SheetParts(NamedTuple):
    """Parts of one category on a sheet, which is a block of a schematic. `category` is the end of the path of a catalog
    category, `parts` the maximum number of different ones, `pieces` the maximum number of each."""

    prefix: str
    category: str
    parts: int
    pieces: int


class ProjectTemplate(msgspec.Struct, frozen=True):
    """A project of a sample workspace; `sheets` are names of SHEETS."""

    name: str
    description: str
    client: str
    sheets: tuple[str, ...]


class WorkspaceTemplate(msgspec.Struct, frozen=True):
    """A workspace with its users (first and last name; the first one is the administrator) and projects."""

    name: str
    slug: str
    description: str
    region: str
    users: tuple[tuple[str, str], ...]
    projects: tuple[ProjectTemplate, ...]


class _Samples(msgspec.Struct, frozen=True):
    sheets: dict[str, tuple[SheetParts, ...]]
    workspaces: tuple[WorkspaceTemplate, ...]
    states: tuple[tuple[str, str, bool], ...]
    comments: tuple[str, ...]
    tasks: tuple[tuple[str, str], ...]
    commits: tuple[str, ...]


_SAMPLES = msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes(), type=_Samples)
SHEETS, WORKSPACES = _SAMPLES.sheets, _SAMPLES.workspaces
STATES = _SAMPLES.states
"""Life cycle states: name, description, and whether parts in it may be used."""
COMMENTS, TASKS, COMMITS = _SAMPLES.comments, _SAMPLES.tasks, _SAMPLES.commits
