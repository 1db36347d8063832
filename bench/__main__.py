"""Run all benchmarks, print their rows, and write them to bench/README.md: `make bench`.

Compare ratios; absolute figures are those of one machine at one time. `python -m bench NAME …` runs some benchmarks and
only prints them: the page always has one whole run. A goal is the least that a figure must be, or below 0 the most. The
exit code is 1 if a goal is missed.
"""

import os
import platform
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from bench import day, parts_list, request_way, service, steps, store

PAGE = Path(__file__).parents[1] / "bench/README.md"
BENCHES = {"service": service, "list": parts_list, "day": day, "store": store, "way": request_way, "steps": steps}
HEAD = "## Results\n"  # of the end of the page, which a run replaces


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all; returns the exit code."""
    if unknown := [name for name in names if name not in BENCHES]:
        print(f"no bench {', '.join(unknown)}; there are {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    start, text, missed = time.monotonic(), "", False
    for name in names or BENCHES:
        rows = table(BENCHES[name].run(), BENCHES[name].GOALS)
        print(f"{name}, after {time.monotonic() - start:.0f} s\n\n{rows}", flush=True)
        text += f"\n### {name}\n\n{rows}"
        missed = missed or "| missed |" in rows
    if not names:
        minutes = round((time.monotonic() - start) / 60)
        run = f"Python {platform.python_version()}, {os.cpu_count()} cores, {minutes} minutes."
        page = PAGE.read_text("utf-8").partition(HEAD)[0]
        PAGE.write_text(f"{page}{HEAD}\nOne whole run of `make bench`: {run}\n{text}", encoding="utf-8")
    return int(missed)


def table(figures: Mapping[str, float], goals: Mapping[str, float]) -> str:
    """Return the figures as a Markdown table."""
    lines = ["| what | figure | goal | |", "|---|---|---|---|"]
    for name, figure in figures.items():
        shown, outcome = "", ""
        if (goal := goals.get(name)) is not None:
            shown = f"≥ {goal:g}" if goal > 0 else f"≤ {-goal:g}"
            outcome = "met" if (figure >= goal if goal > 0 else figure <= -goal) else "missed"
        lines.append(f"| {name} | {figure:.2f} | {shown} | {outcome} |".replace(".00 |", " |"))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
