"""The reference of the diagnoses of `doctor`, made of proxy/doctor/diagnoses.yaml: `python -m docs.diagnoses`.

Prints docs/reference/diagnoses.md; tests/project/docs holds the page to it.
"""

from proxy.doctor import findings

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


def page() -> str:
    """Return the whole page."""
    text = HEAD
    for stage, diagnoses in findings.DIAGNOSES.items():
        rows = (_row(code, diagnosis) for code, diagnosis in diagnoses.items())
        text += f"\n## {stage}\n\n{TABLE}{''.join(rows)}"
    return text


def _row(code: str, diagnosis: findings.Diagnosis) -> str:
    kind = "failure" if diagnosis.outcome == "failed" else diagnosis.outcome
    cells = (f"`{code}`", kind, diagnosis.cause, diagnosis.remedy)
    return f"| {' | '.join(cell.translate(ESCAPED) for cell in cells)} |\n"


if __name__ == "__main__":
    print(page(), end="")
