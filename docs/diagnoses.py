"""The reference of the diagnoses of `doctor`, made of those that its stages declare: `python -m docs.diagnoses`.

Prints docs/reference/diagnoses.md; tests/project/docs holds the page to it.
"""

import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from proxy.doctor import run
from proxy.doctor.inspection import Diagnosis, StageCheck

HEAD = """# Diagnoses

Everything that [`v3bridge doctor`](../how-to/doctor.md) can find wrong, by stage. A code keeps its meaning in later
versions, so that scripts may use it; it is `code` in the output of `--json`. A failure makes the exit code 1, or 2 in
the stage configuration; a warning does not. This page is generated from the program. A test fails while it is stale;
this renews it:

```sh
python -m docs.diagnoses > docs/reference/diagnoses.md
```
"""
TABLE = "| code | kind | usual cause | what to do |\n|---|---|---|---|\n"
ESCAPED = str.maketrans({"|": "\\|", "<": "&lt;", "\n": " "})


def of_stage(stage: StageCheck) -> Iterator[Diagnosis]:
    """Return the diagnoses that the module of a stage declares, or takes from others."""
    return _within(vars(sys.modules[stage.check.__module__]).values())


def _within(values: Iterable[Any]) -> Iterator[Diagnosis]:
    for value in values:
        if isinstance(value, Diagnosis):
            yield value
        elif isinstance(value, dict):
            yield from (each for each in value.values() if isinstance(each, Diagnosis))
        elif isinstance(value, tuple):
            yield from (each for each in value if isinstance(each, Diagnosis))
        elif isinstance(value, ModuleType) and value.__name__.startswith("proxy.doctor."):
            yield from _within(vars(value).values())


def page() -> str:
    """Return the whole page. A diagnosis of several stages is listed with the first."""
    listed: set[str] = set()
    text = HEAD
    for stage in run.STAGES:
        found = {each.code: each for each in of_stage(stage) if each.code not in listed}
        listed |= found.keys()
        text += f"\n## {stage.name}\n\n{TABLE}" + "".join(_row(each) for each in found.values())
    return text


def _row(diagnosis: Diagnosis) -> str:
    kind = "failure" if diagnosis.outcome == "failed" else diagnosis.outcome
    cells = (f"`{diagnosis.code}`", kind, diagnosis.cause, diagnosis.remedy)
    return f"| {' | '.join(cell.translate(ESCAPED) for cell in cells)} |\n"


if __name__ == "__main__":
    print(page(), end="")
