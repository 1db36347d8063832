"""Answers of GraphQL on the sandbox, by their tests with larger numbers: random documents beside the upstream's own
responses, and what a list of parts costs by programs of three dialects, in every order.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from bench.goals import Goal

DOCUMENTS, LINES = 10_000, 300
TESTS = [f"tests/together/graphql/test_{name}.py" for name in ("random_documents", "one_record")]
DIFFERENT = f"{DOCUMENTS} random documents, in runs of 50: runs with other data or errors than the upstream's"
FAILED = f"{LINES} lines by v3, GraphQL and v4: orders that failed"
PARTS = f"{LINES} lines by v3, GraphQL and v4, with 6 minutes and 23 hours between, in the worst order: parts"
GOALS = {DIFFERENT: Goal("≤", 0), FAILED: Goal("≤", 0), PARTS: Goal("≤", 1.02 * LINES)}


def run() -> dict[str, float]:
    """Return the numbers of failures, and of parts."""
    more = {"TEST_DOCUMENTS": str(DOCUMENTS), "TEST_LINES": str(LINES)}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(os.cpu_count()), f"--junitxml={report}", *TESTS]
        subprocess.run(command, env=os.environ | more, stdout=sys.stderr, check=False)
        cases = list(ElementTree.parse(report).iter("testcase"))
    documents, lists = ([case for case in cases if name in case.get("classname", "")] for name in ("random", "record"))
    assert documents
    return {
        DIFFERENT: sum(map(_is_failure, documents)),
        FAILED: sum(map(_is_failure, lists)),
        PARTS: max(float(each.get("value", "nan")) for case in lists for each in case.iter("property")),
    }


def _is_failure(case: ElementTree.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None
