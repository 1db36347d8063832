"""Tests of goals: when a goal is met, and that a run with a missed goal ends with exit code 1 and names it."""

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import __main__ as runs
from bench import goals
from bench.goals import Goal


@pytest.mark.parametrize(
    "goal, figure, outcome",
    [
        (Goal("≤", 2.0), 2.0, "met"),
        (Goal("≤", 2.0), 2.004, "missed"),  # which is printed as 2.00
        (Goal("≥", 0.85), 0.85, "met"),
        (Goal("≥", 0.85), 0.849, "missed"),
        (Goal("≤", 2.0), math.nan, "not measured"),
        (Goal("≤", "by chance"), 1.1, "met"),
        (Goal("≤", "by chance"), 1.3, "missed"),
        (Goal("≤", "no such row"), 1.0, "not measured"),
    ],
)
def test_goal_is_checked_against_the_unrounded_figure(goal: Goal, figure: float, outcome: str) -> None:
    assert goal.outcome(figure, {"by chance": 1.2}) == outcome


def test_every_figure_and_every_goal_has_a_row() -> None:
    made = goals.rows({"fast (ms)": 1.5, "size": 3.0}, {"fast (ms)": Goal("≤", 1.0), "gone": Goal("≥", 2.0)})
    assert made == [
        ("fast (ms)", "1.50", "≤ 1.00", "missed"),
        ("size", "3", "", ""),
        ("gone", "", "≥ 2.00", "not measured"),
    ]
    assert [row.failed for row in made] == [True, False, True]
    assert goals.table(made).splitlines()[2] == "| fast (ms) | 1.50 | ≤ 1.00 | missed |"


def _bench(monkeypatch: pytest.MonkeyPatch, page: Path, **figures: float) -> None:
    """Benches by these names, each with one figure below 2 or not."""
    benches = {
        name: SimpleNamespace(run=lambda name=name, figure=figure: {name: figure}, GOALS={name: Goal("≤", 2.0)})
        for name, figure in figures.items()
    }
    monkeypatch.setattr(runs, "BENCHES", benches)
    monkeypatch.setattr(runs, "PAGE", page)


def test_complete_run_replaces_the_results_and_fails_on_a_missed_goal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "performance.md"
    page.write_text("# Prose\n\n## Results\n\nan earlier run\n", "utf-8")
    _bench(monkeypatch, page, quick=1.0, slow=3.0)
    assert runs.main([]) == 1
    progress = capsys.readouterr().err
    assert progress.startswith("1/2 quick …\n1/2 quick: 0 s\n2/2 slow …\n2/2 slow: 0 s\n")
    assert progress.endswith("\nmissed: slow is 3, the goal is ≤ 2.00\n")
    text = page.read_text("utf-8")
    assert text.startswith("# Prose\n\n## Results\n\nOne whole run")
    assert "an earlier run" not in text
    assert (
        "\n### quick\n\n| what | figure | goal | outcome |\n|---|---|---|---|\n| quick | 1 | ≤ 2.00 | met |\n" in text
    )
    assert text.endswith(
        "\n### slow\n\n| what | figure | goal | outcome |\n|---|---|---|---|\n| slow | 3 | ≤ 2.00 | missed |\n"
    )
    _bench(monkeypatch, page, quick=1.0)
    assert runs.main([]) == 0
    assert "slow" not in page.read_text("utf-8")


def test_partial_run_prints_and_keeps_the_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "performance.md"
    page.write_text("# Prose\n\n## Results\n\nan earlier run\n", "utf-8")
    _bench(monkeypatch, page, quick=1.0, slow=3.0)
    assert (runs.main(["quick"]), runs.main(["slow"]), runs.main(["quik"])) == (0, 1, 2)
    shown = capsys.readouterr()
    assert "quick" in shown.out
    assert "no bench quik; there are quick, slow" in shown.err
    assert page.read_text("utf-8").endswith("an earlier run\n")


def test_bench_that_ends_with_an_error_is_not_measured_and_the_others_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash() -> dict[str, float]:
        raise SystemExit("the service did not start")

    page = tmp_path / "performance.md"
    page.write_text("# Prose\n\n## Results\n\nan earlier run\n", "utf-8")
    _bench(monkeypatch, page, quick=1.0, later=1.5)
    monkeypatch.setattr(runs.BENCHES["quick"], "run", crash)
    assert runs.main([]) == 1
    rows = [line for line in page.read_text("utf-8").splitlines() if "measured |" in line or "met |" in line]
    assert rows == [
        "| the benchmark quick |  |  | not measured |",
        "| quick |  | ≤ 2.00 | not measured |",
        "| later | 1.50 | ≤ 2.00 | met |",
    ]
    shown = capsys.readouterr().err
    assert "SystemExit: the service did not start" in shown
    assert shown.endswith(
        "not measured: the benchmark quick is not known, the goal is to run\n"
        "not measured: quick is not known, the goal is ≤ 2.00\n"
    )


def test_documentation_describes_every_bench() -> None:
    page = Path(__file__).parents[3] / "docs" / "explanation" / "performance.md"
    opening = page.read_text("utf-8").partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in opening.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{name}`" for name in runs.BENCHES]
