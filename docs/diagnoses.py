"""The end of docs/how-to/troubleshooting.md, every diagnosis of `doctor`: `python -m docs.diagnoses`.

Writes it, made of proxy/doctor/diagnoses.yaml; tests/project holds the page to it.
"""

from pathlib import Path

from proxy.doctor import findings

PAGE = Path(__file__).parent / "how-to/troubleshooting.md"
HEAD = """## Diagnoses

Everything that `v3bridge doctor` can find wrong, by stage. A warning says so; all others are failures.
"""
TABLE = "| code | usual cause | what to do |\n|---|---|---|\n"
ESCAPED = str.maketrans({"|": "\\|", "<": "&lt;", "\n": " "})


def page() -> str:
    """Return the whole page, which ends with the diagnoses."""
    text = PAGE.read_text(encoding="utf-8").partition(HEAD)[0] + HEAD
    for stage, diagnoses in findings.DIAGNOSES.items():
        rows = (_row(code, diagnosis) for code, diagnosis in diagnoses.items())
        text += f"\n### {stage}\n\n{TABLE}{''.join(rows)}"
    return text


def _row(code: str, diagnosis: findings.Diagnosis) -> str:
    cause = diagnosis.cause if diagnosis.outcome == "failed" else f"{diagnosis.outcome}: {diagnosis.cause}"
    cells = (f"`{code}`", cause, diagnosis.remedy)
    return f"| {' | '.join(cell.translate(ESCAPED) for cell in cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
