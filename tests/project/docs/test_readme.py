"""README.md: its commands are there, its curl line works, and the output that it shows is the real one, shortened."""

import http.client
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support import cases, running_proxy

import nexar_sandbox
from proxy import config, model

ROOT = Path(__file__).parents[3]
CUT = "..."


@pytest.fixture(scope="module")
def page(pages: Any) -> Any:
    return pages["README.md"]


@pytest.fixture(scope="module")
def console(page: Any) -> Any:
    """The curl line, and what is shown below it."""
    (block,) = page.blocks("console")
    command, _, output = block.text.removeprefix("$ ").partition("\n")
    return command, output


@pytest.fixture(scope="module")
def printed_lines() -> Any:
    """What the running command prints, up to its curl line."""
    command = [sys.executable, "-m", "proxy", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line.strip())
            if line.strip().startswith("curl"):
                break
        yield lines
        process.terminate()


@pytest.fixture(scope="module")
def reply(printed_lines: Any) -> Any:
    """What the printed curl line gets; the target goes out as written, as with curl -g."""
    found = re.fullmatch(r"(http://([^/]+))(/.*)", shlex.split(printed_lines[-1])[2])
    assert found is not None
    _, host, target = found.groups()
    connection = http.client.HTTPConnection(host, timeout=30)
    connection.request("GET", target)
    try:
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def _json(shown: Any) -> Any:
    """Shortened JSON as JSON: `...` is the key "..." of an object or the last element of a list."""
    pieces: list[str] = []
    inside: list[str] = []
    for piece in re.findall(r'"(?:[^"\\]|\\.)*"|\.\.\.|.', shown, re.DOTALL):
        if piece in ("}", "]"):
            inside.pop()
        if piece in ("{", "["):
            inside.append(piece)
        cut = f'"{CUT}": 0' if inside[-1:] == ["{"] else f'"{CUT}"'
        pieces.append(cut if piece == CUT else piece)
    return json.loads("".join(pieces))


def _differences(shown: Any, real: Any, at: str = "reply") -> Any:
    """Where what is shown is not the reply, apart from what is cut."""
    if isinstance(shown, dict) and isinstance(real, dict):
        keys = shown.keys() - {CUT}
        wrong = keys - real.keys() if CUT in shown else keys ^ real.keys()
        return [f"{at}.{key}" for key in wrong] + [
            line for key in keys & real.keys() for line in _differences(shown[key], real[key], f"{at}.{key}")
        ]
    if isinstance(shown, list) and isinstance(real, list):
        kept = shown[:-1] if shown[-1:] == [CUT] else shown
        if len(kept) > len(real) or (kept == shown and len(kept) != len(real)):
            return [f"{at}: {len(kept)} of {len(real)}"]
        return [line for n, one in enumerate(kept) for line in _differences(one, real[n], f"{at}[{n}]")]
    return [] if shown == real else [f"{at}: {shown!r}, really {real!r}"]


def test_curl_line_is_the_printed_one(console: Any, printed_lines: Any) -> None:
    port = config.ListenSettings().port
    assert re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", printed_lines[-1]) == console[0]


def test_shown_output_is_the_real_one_shortened(console: Any, reply: Any) -> None:
    assert _differences(_json(console[1]), reply) == []


@cases.parametrize("shown,real")
def test_wrong_output_is_detected(shown: str, real: Any) -> None:
    assert _differences(_json(shown), real) != []


def test_arguments_reach_the_command(needs_program: Callable[[str], str]) -> None:
    words = [needs_program("make"), "-n", "run", "ARGS=--config our.yaml"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].endswith("v3bridge serve --config our.yaml")


def test_verdict_of_the_example_log_is_the_shown_one(page: Any, tmp_path: Path) -> None:
    (command,) = re.findall(r"^v3bridge compare .*--requests examples/access\.log$", page.text, re.MULTILINE)
    words = [sys.executable, "-m", "proxy", *shlex.split(command)[1:]]
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | {"COLUMNS": "400"}, capture_output=True, text=True, check=False
    )
    head = next(line for line in (done.stdout + done.stderr).splitlines() if line.startswith("Inconclusive: "))
    shown = re.search(
        r"\*inconclusive\* for the example log, whose (\d+) requests are (too few for .*? endpoints)\.", page.text
    )
    assert shown is not None
    assert f"of {shown[1]} requests, {shown[2]}" in head


ELSEWHERE = ("v3bridge init", "v3bridge serve", "v3bridge status")  # run by tests/together/cli
COMMAND = re.compile(r"(?:^`?v3bridge|make) [^`\n#]*[^`\n# ]", re.MULTILINE)
BIN = Path(sys.executable).parent
MADE = ("-o", ".venv/.run", "-o", ".venv/.test", f"BIN={BIN}")  # with the environment that runs this test


def _output(words: Any, until: Any = None, **environ: Any) -> Any:
    """What a command prints, whole, or up to a word, after which it is ended."""
    pipe = subprocess.PIPE
    environ = os.environ | environ
    with subprocess.Popen(words, cwd=ROOT, env=environ, stdout=pipe, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        shown = ""
        for line in process.stdout:
            shown += line
            if until is not None and until in line:
                os.kill(int(_child(process.pid)), signal.SIGTERM)
                until = None
        return process.wait(60), shown


def _child(pid: Any) -> Any:
    """The command that make runs."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]


@pytest.mark.parametrize(
    "command",
    sorted(
        each
        for each in {each.strip("`") for each in COMMAND.findall((ROOT / "README.md").read_text(encoding="utf-8"))}
        if not each.startswith(ELSEWHERE)
    ),
)
def test_every_shown_command_works_in_a_clean_clone(
    page: Any, needs_program: Callable[[str], str], tmp_path: Path, command: Any
) -> None:
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    files = re.findall(r"[\w./-]+\.(?:log|yaml|csv)", command)
    assert not kept or set(files) - {"our.yaml"} <= set(kept)
    if command.startswith("v3bridge"):
        shutil.copy(ROOT / "examples" / "BOM.csv", tmp_path)  # the filled copy stands beside it
        words = shlex.split(command.replace("examples/BOM.csv", str(tmp_path / "BOM.csv")))
        code, shown = _output([sys.executable, "-m", "proxy", *words[1:]], XDG_STATE_HOME=str(tmp_path))
        assert (code, "v3bridge: " in shown) in [(0, False), (1, False)], shown
    elif command.startswith("make run"):
        words = [needs_program("make"), *MADE, *shlex.split(command)[1:], "ARGS=--port 0"]
        code, shown = _output(words, until="curl -g")
        assert code == 0, shown
    elif command == "make docs":
        code, shown = _output([needs_program("make"), "-n", "docs"])  # what it needs is not installed for tests
        assert (code, "sphinx-build" in shown) == (0, True), shown
    else:
        assert command == "make test"
        words = [needs_program("make"), *MADE, "test", "WORKERS=0", "ARGS=tests/service/test_errors.py"]
        code, shown = _output(words)
        assert code == 0, shown
        assert "running pytest tests/service/test_errors.py" in shown


@pytest.mark.filterwarnings("ignore::schematics.deprecated.SchematicsDeprecationWarning")
def test_shown_program_gets_parts(page: Any, printed_lines: Any) -> None:
    (block,) = page.blocks("python")
    names: dict[str, Any] = {}
    (url,) = re.findall(r"http://[^/]+", printed_lines[-1])
    exec(block.text.replace(f"http://127.0.0.1:{config.ListenSettings().port}", url), names)
    (result,) = names["client"].match([{"mpn": "SN74S74N"}])["results"]
    assert {item["mpn"] for item in result["items"]} == {"SN74S74N"}


async def test_documented_cost_is_billed(page: Any) -> None:
    words = " ".join(page.text.split())
    ((pattern, billed),) = re.findall(r"`(\S+)` costs (\d+)", words)
    costs = []
    async with nexar_sandbox.serve(nexar_sandbox.SandboxSettings()) as sandbox:
        own: dict[str, Any] = {"client_id": config.ClientId(sandbox.default_application.client_id)}
        own["client_secret"] = config.Secret(sandbox.default_application.client_secret)
        chosen = running_proxy.settings(sandbox.graphql_url, sandbox.token_url, application=own)
        async with running_proxy.running(chosen) as client:
            for query in ({"mpn": pattern}, {"mpn": "SN74S74N"}, {"mpn": "SN74S74N", "limit": 2}):
                target = f"/v3/parts/match?apikey={running_proxy.KEY}&queries={quote(json.dumps([query]))}"
                costs.append((await client.get(target)).headers["X-Parts-Cost"])
    assert costs == [billed, str(model.MATCH_LIMIT_DEFAULT), "2"]


def test_command_is_the_installed_one(page: Any) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert set(re.findall(r"^`?(v3\w+) .* --", page.text, re.MULTILINE)) == set(scripts)
