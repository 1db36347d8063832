"""Tests of `v3bridge doctor`: its output, exit codes, and that it changes nothing."""

import json
from pathlib import Path

from support.running_commands import Run

from proxy.cli.installation import CHECKS

MISTAKES = """\
listen: {port: 70000}
log: {level: loud}
store: redis://user:planted-password@127.0.0.1:1
applications:
  demo: {apikeys: [planted-key, planted-key], client_id: planted-id, client_secret: planted-secret, features: [X]}
"""


def write(folder: Path, text: str) -> str:
    file = folder / "own.yaml"
    file.touch(0o600)
    file.write_text(text)
    return str(file)


def test_every_check_is_one_line_and_what_to_do_another(run_command: Run) -> None:
    done = run_command("doctor")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [*CHECKS]
    assert [line.strip()[0] for line in lines if line.startswith(" ")] == ["→"] * (len(lines) - len(CHECKS))
    assert (len(CHECKS), done.returncode) == (12, 0)


def test_mistakes_of_the_configuration_are_those_that_serve_prints(run_command: Run, tmp_path: Path) -> None:
    file = write(tmp_path, MISTAKES)
    served, used, examined = (run_command(name, "--config", file) for name in ("serve", "usage", "doctor"))
    mistakes = [line.removeprefix("v3bridge: ") for line in served.stderr.splitlines()]
    assert len(mistakes) == 4
    assert (used.stderr, used.returncode) == (served.stderr, 2)
    assert all(mistake in examined.stdout for mistake in mistakes)
    assert examined.stdout.count("skipped needs") == len(CHECKS) - 1
    assert (served.returncode, examined.returncode, examined.stderr) == (2, 2, "")
    as_json = run_command("doctor", "--config", file, "--json").stdout
    assert ("planted" in examined.stdout + as_json, len(as_json) > 100) == (False, True)


def test_only_one_check_runs_with_those_that_it_needs(run_command: Run) -> None:
    done = run_command("doctor", "--only", "clock", "--json")
    names = [check["name"] for check in json.loads(done.stdout)["checks"]]
    assert (done.returncode, names) == (0, ["configuration", "dns", "tls", "clock"])
    assert "is none of configuration, dns" in run_command("doctor", "--only", "clocks").stderr
