"""README.md and the tutorial work as printed: their files are saved, their commands run, their output appears.

Only ports are others, those of operators too, and `v3bridge init` gets its answers as options. The reader's folder is a
clone of the project, made of links.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from acceptance import running

STEP = re.compile(r"^( *)```(\w*) ?([^\n]*)\n(.*?)^\1```$|`(v3bridge \w+ [^`\n]+|make \w+)`", re.MULTILINE | re.DOTALL)
PLACEHOLDER = re.compile(r"(?<![\w.-])[A-Z]+(?![\w.])|…")  # as in `v3bridge explain URL`
MADE = ("-o", ".venv/.run", "-o", ".venv/.test")  # what make would install anew
ANSWERS = (
    "init --yes --client-id {client_id} --client-secret env:SECRET --graphql-url {graphql_url} --token-url {token_url}"
)


class Reader:
    """Somebody who follows a page."""

    def __init__(self, folder: Path, sandbox: running.Sandbox) -> None:
        self._folder, self._sandbox = folder, sandbox
        self._ports = {port: str(running.free_port()) for port in ("8080", "8081")}
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._env = running.environment(folder, {"SECRET": sandbox.ways["client_secret"], "COLUMNS": "200"})
        self.url = f"http://127.0.0.1:{self._ports['8080']}"
        self.output = ""
        self._file = "config.yaml"  # of the service that runs
        for path in running.ROOT.iterdir():
            if path.name in ("examples", "config.yaml"):
                (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / path.name)
            elif not path.name.startswith(".git"):
                (folder / path.name).symlink_to(path)

    def follow(self, page: str) -> None:
        """Do what the page says, block by block."""
        for step in STEP.finditer((running.ROOT / page).read_text("utf-8")):
            _, language, word, text, inline = step.groups()
            if inline:
                if not PLACEHOLDER.search(inline):
                    self._run(re.sub("^(v3bridge (?:status|usage) .*)", rf"\1 --config {self._file}", inline))
            elif "." in word:
                (self._folder / word).write_text(self.local(text))
            elif language == "sh" and word != "install":
                for line in filter(None, map(str.strip, re.sub(r" +#.*", "", text).splitlines())):
                    self._run(line)
            elif language == "console":
                self._compare(text)
            elif language == "python":
                exec(self.local(text), {})
            elif word == "output":
                assert text in self.output, text

    def local(self, text: str) -> str:
        """Return a text of the page with ports that are free here."""
        return re.sub("|".join(self._ports), lambda port: self._ports[port[0]], text)

    def _run(self, line: str) -> None:
        """Run a command to its end; start one that goes on until it responds."""
        if line.startswith("v3bridge serve") or line == "make run":
            self._serve(line)
        elif line.startswith("nexar-sandbox"):
            self._start(self.local(line), "8081")
        elif line.startswith("make "):
            self._execute(line.replace("make", "make -n", 1))
        else:
            answered = f"v3bridge {ANSWERS.format(**self._sandbox.ways)}"
            self._execute(self.local(line).replace("v3bridge init", answered))

    def _serve(self, line: str) -> None:
        self._file = (re.findall(r"--config (\S+)", line) or ["config.yaml"])[0]
        file = self._folder / self._file
        if "\nadmin:" not in file.read_text():
            with file.open("a") as text:
                text.write(f"\nadmin: {{port: {running.free_port()}}}\n")
        options = f"--config {self._file} --port {self._ports['8080']}"
        made = f"make {' '.join(MADE)} run ARGS='{options}'"
        self._start(made if line == "make run" else f"v3bridge serve {options}", "8080")

    def _start(self, line: str, port: str) -> None:
        """Start a command in place of the one that had its port, and wait until it responds."""
        self.stop(port)
        log = self._folder / f"log-{port}"
        with log.open("wb") as out:
            self._started[port] = process = subprocess.Popen(
                shlex.split(line), cwd=self._folder, env=self._env, stdout=out, stderr=out, start_new_session=True
            )

        def responds() -> bool:
            assert process.poll() is None, (line, log.read_text())
            try:
                return running.request(f"http://127.0.0.1:{self._ports[port]}", "/healthz").status > 0
            except OSError:
                return False

        running.until(responds, line)

    def _execute(self, line: str) -> None:
        done = running.run(["sh", "-ec", line], self._folder, variables=self._env)
        self.output = done.stdout
        assert done.returncode in (0, 1), (line, done.stdout, done.stderr)
        assert "v3bridge: " not in done.stderr, (line, done.stderr)

    def _compare(self, text: str) -> None:
        """Run the command of a console, which the service has printed; the values shown are those of its output."""
        command, _, shown = self.local(text).removeprefix("$ ").partition("\n")
        running.until(lambda: command in (self._folder / "log-8080").read_text(), "the service prints this line")
        self._execute(f"{command} --silent --show-error")
        values = re.findall(r'"\w+": (?:"[^"]*"|\d+)|\[\d+, "[\d.]+"\]', shown)
        assert len(values) > 5
        assert [each for each in values if "".join(each.split()) not in "".join(self.output.split())] == []

    def stop(self, port: str = "") -> None:
        """Stop what has a port, or all."""
        for each in [port] if port else list(self._started):
            if each in self._started:
                process = self._started.pop(each)
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture
def reader(tmp_path: Path, sandbox: running.Sandbox, needs_program: Callable[[str], str]) -> Iterator[Reader]:
    for program in ("make", "curl"):
        needs_program(program)
    following = Reader(tmp_path, sandbox)
    yield following
    following.stop()


@pytest.mark.filterwarnings("ignore::schematics.deprecated.SchematicsDeprecationWarning")
@pytest.mark.parametrize("page", ["README.md", "docs/first-ten-minutes.md"])
def test_page_works_as_printed(reader: Reader, page: str) -> None:
    reader.follow(page)
