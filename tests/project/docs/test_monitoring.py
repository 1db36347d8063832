"""deploy/: Prometheus accepts the rules, each alert fires for its reason only, and the dashboard has real metrics."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import prometheus_client
import pytest
import yaml

from proxy.telemetry import metrics
from proxy.v3 import endpoints

from .conftest import ROOT

RULES = ROOT / "deploy/prometheus-rules.yaml"
DASHBOARD = ROOT / "deploy/grafana-dashboard.json"
METRIC = re.compile(r"\bv3bridge_\w+")
ROUTE = re.compile(r'route=~"([^"]+)"')
ALERTS = yaml.safe_load(Path(__file__).with_name("alerts.yaml").read_text())
SECONDS = 60


@pytest.fixture(scope="module")
def rules() -> Any:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


@pytest.fixture(scope="module")
def dashboard() -> Any:
    return json.loads(DASHBOARD.read_text())


def _queries(dashboard: Any) -> list[str]:
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert [panel["title"] for panel in panels if not panel["targets"]] == []
    return [target["expr"] for panel in panels for target in panel["targets"]]


def _exposed() -> set[str]:
    """Names of the series that the service exposes."""
    names = set()
    for measure in metrics.Metrics(prometheus_client.CollectorRegistry()).measures().values():
        family = measure.family()
        endings = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}.get(family.type, ("",))
        names |= {f"{family.name}{ending}" for ending in endings}
    return names


def test_rules_and_dashboard_use_metrics_and_routes_that_exist(rules: Any, dashboard: Any) -> None:
    expressions = [rule["expr"] for rule in rules.values()] + _queries(dashboard)
    variables = [each.get("definition", "") for each in dashboard["templating"]["list"]]
    named = set(METRIC.findall(" ".join(expressions + variables)))
    assert named
    assert named - _exposed() == set()
    families = {re.sub("_(bucket|sum|count)$", "", name) for name in _exposed()}
    shown = set(METRIC.findall(" ".join(_queries(dashboard))))
    assert families - {name.removesuffix("_bucket") for name in shown} == set()
    patterns = {pattern for expression in expressions for pattern in ROUTE.findall(expression)}
    paths = [f"{prefix}/parts/match" for prefix in endpoints.PREFIXES]
    assert patterns
    assert all(re.fullmatch(pattern, path) for pattern in patterns for path in paths)


def test_alerts_are_those_of_the_reference(rules: Any, pages: Any) -> None:
    rows = [[f"`{name}`", rule["labels"]["severity"], rule["annotations"]["summary"]] for name, rule in rules.items()]
    assert pages["docs/reference/monitoring.md"].table("alert") == rows


def _promtool(program: str, *arguments: str) -> None:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_for_its_reason_only(needs_program: Callable[[str], str], rules: Any, tmp_path: Path) -> None:
    assert ALERTS.keys() == rules.keys()
    tests = []
    for name, case in ALERTS.items():
        rule = rules[name]
        alert = {"exp_labels": case["labels"] | rule["labels"], "exp_annotations": rule["annotations"]}
        tests += [_rule_test(name, case["fires"], [alert]), _rule_test(name, case["silent"], [])]
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    _promtool(needs_program("promtool"), "check", "rules", str(RULES))
    _promtool(needs_program("promtool"), "test", "rules", str(file))


def _rule_test(name: str, series: dict[str, str], alerts: list[Any]) -> Any:
    return {
        "interval": "1m",
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "alert_rule_test": [{"eval_time": "90m", "alertname": name, "exp_alerts": alerts}],
    }


def test_prometheus_accepts_every_query_of_the_dashboard(
    needs_program: Callable[[str], str], dashboard: Any, tmp_path: Path
) -> None:
    recorded = [
        {"record": f"query:{number}", "expr": query.replace("$__rate_interval", "1m")}
        for number, query in enumerate(_queries(dashboard))
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]}))
    _promtool(needs_program("promtool"), "check", "rules", str(file))


def test_panels_of_the_dashboard_have_a_place_each(dashboard: Any) -> None:
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    cells = [
        (x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(places)


def test_labels_in_the_legends_are_those_of_the_queries(dashboard: Any) -> None:
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            kept = set(re.findall(r"\w+", "".join(re.findall(r"by \(([^)]*)\)", target["expr"]))))
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) == kept - {"le"}, panel["title"]
