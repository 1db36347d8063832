"""Metrics of several processes that write theirs into one folder."""

from pathlib import Path

from proxy.telemetry import metrics


def shown(counted: metrics.Metrics) -> list[float]:
    lines = dict(line.rsplit(" ", 1) for line in counted.text().decode().splitlines() if line[0] != "#")
    names = 'v3bridge_parts_returned_total{application="demo"}', "v3bridge_upstream_requests_in_flight"
    return [float(lines[each]) for each in (*names, 'v3bridge_request_duration_seconds_bucket{le="0.05",route="/v3"}')]


def worker(folder: Path, name: str, parts: int) -> metrics.Metrics:
    counted = metrics.Metrics(file=folder / f"{name}.json")
    counted.parts.labels("demo").inc(parts)
    counted.upstream_in_flight.inc(parts)
    counted.store_unavailable.set(False)
    counted.request_seconds.labels("/v3").observe(0.04)
    counted.write()
    return counted


def test_any_worker_shows_the_counts_of_all_and_the_gauges_of_those_that_live(tmp_path: Path) -> None:
    worker(tmp_path, "1", 3)
    other = worker(tmp_path, "2", 4)
    assert shown(other) == [7, 7, 2]
    metrics.forget_gauges(tmp_path / "1.json")
    assert shown(other) == [7, 4, 2]
    assert shown(worker(tmp_path, "1", 1)) == shown(other) == [8, 5, 3]
    assert len(list(tmp_path.iterdir())) == 2


def test_file_that_is_broken_or_gone_is_left_out(tmp_path: Path) -> None:
    metrics.forget_gauges(tmp_path / "3.json")
    (tmp_path / "4.json").write_text("[[")
    assert shown(worker(tmp_path, "1", 3)) == [3, 3, 1]
