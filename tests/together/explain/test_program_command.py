"""`v3bridge explain --as`: one program on standard output, or one for each kind of request in a folder."""

import ast
import os
import subprocess
from functools import partial
from pathlib import Path

import pytest
from support.running_commands import run_in_this_process

TARGET = "/v3/parts/match?queries=[%7B%22mpn%22:%22SN74S74N%22%7D]"


explain = partial(run_in_this_process, "explain")


def test_a_program_is_all_that_is_printed() -> None:
    done = explain("--as", "python", "--fields", "mpn", TARGET)
    assert (done.returncode, done.stderr) == (0, "")
    assert ast.get_docstring(ast.parse(done.stdout)) is not None


def test_a_file_gives_a_program_for_each_kind_of_request(tmp_path: Path) -> None:
    done = explain("--as", "curl", "examples/access.log", "--output", str(tmp_path / "new"))
    names = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{tmp_path}/new/parts_match_2.sh" in names
    assert sorted(map(str, (tmp_path / "new").iterdir())) == sorted(names)
    for name in names:
        subprocess.run(["sh", "-n", name], check=True)
        assert os.access(name, os.X_OK)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            ["--as", "curl", "examples/access.log"],
            "15 kinds of requests, and each is a program of its own: name a folder",
        ),
        (["--fields", "mpn", TARGET], "choose a language with --as"),
        (["--as", "python", "--json", TARGET], "cannot be combined"),
        (["--as", "python", "--fields", "mpm", TARGET], "did you mean mpn?"),
        (["--as", "ruby", TARGET], "'ruby' is not one of 'python', 'curl'"),
        (["--as", "python", "/v3/parts/match"], "v3 refuses this request: 400"),
        (["--as", "python", "--output", "README.md/x", TARGET], "README.md/x: "),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], message: str) -> None:
    done = explain(*arguments)
    assert done.returncode != 0
    assert done.stdout == ""
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
