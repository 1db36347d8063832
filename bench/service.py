"""The whole service beside the floor (bench/floor.py), on the same canned upstream, in turns.

Goal: at least 0.85 of the floor's requests a second with the answer cache off. The service does everything it always
does: keys, views, quota, metrics, request ids; its log is set to warnings, because the floor has none.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

ROUNDS, SECONDS, CONNECTIONS = 7, 3.0, 64
TARGET = "/v3/parts/match?apikey=EXAMPLE_KEY&queries=" + quote('[{"mpn":"SN74S74N"}]')
CONFIG = """
listen: {{port: 0}}
upstream: {{graphql_url: "http://127.0.0.1:{port}/graphql", token_url: "http://127.0.0.1:{port}/connect/token"}}
applications: {{bench: {{client_id: bench, client_secret: "bench-secret", apikeys: [EXAMPLE_KEY]}}}}
translation: {{single_query: supMultiMatch}}
answers: {{seconds: {seconds}}}
log: {{level: warning}}
"""


def run() -> dict[str, float]:
    """Requests a second of each, and service / floor, the median of all rounds."""
    with tempfile.TemporaryDirectory() as folder, _server("bench.upstream") as upstream:
        port = int(upstream)
        with (
            _floor(port) as floor,
            _service(port, 0, folder) as service,
            _service(port, 60, folder) as keeping,
        ):
            for warm in (floor, service, keeping):
                _load(warm, 1.0)
            rounds = [(_load(floor), _load(service), _load(keeping)) for _ in range(ROUNDS)]
    rates = [[one["rate"] for one in each] for each in rounds]
    return {
        "floor (requests/s)": statistics.median(r[0] for r in rates),
        "service, answers off (requests/s)": statistics.median(r[1] for r in rates),
        "service / floor": statistics.median(r[1] / r[0] for r in rates),
        "service with kept answers / floor": statistics.median(r[2] / r[0] for r in rates),
        "p99, floor (ms)": statistics.median(each[0]["p99"] for each in rounds),
        "p99, service (ms)": statistics.median(each[1]["p99"] for each in rounds),
    }


def _load(port: int, seconds: float = SECONDS) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.load", str(port), str(seconds), str(CONNECTIONS), TARGET]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return result


@contextmanager
def _server(module: str, *arguments: str) -> Iterator[str]:
    """A process, and the first line it prints."""
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline()
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _service(upstream: int, seconds: int, folder: str) -> Iterator[int]:
    file = Path(folder) / f"config-{seconds}.yaml"
    file.write_text(CONFIG.format(port=upstream, seconds=seconds))
    with _server("proxy", "serve", "--config", str(file)) as line:
        yield int(line.partition("127.0.0.1:")[2].partition("/")[0])


@contextmanager
def _floor(upstream: int) -> Iterator[int]:
    with _server("bench.floor", f"http://127.0.0.1:{upstream}/graphql") as line:
        yield int(line)
