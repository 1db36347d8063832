"""Draw the first minute with v3bridge as a terminal, docs/images/first-minute.svg.

Runs every command that the picture shows, and draws what it prints. Needs curl and jq.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
URL = "http://127.0.0.1:8080"
MATCH = f"""'{URL}/v3/parts/match?apikey=EXAMPLE_KEY&queries=[{{"mpn":"LM317T"}}]'"""
START = "v3bridge serve"
COMMANDS = (
    (
        "# a v3 request, as an old program sends it",
        f"curl -sg {MATCH} |\n    jq -c '.results[].items[] | [.mpn, .manufacturer.name, .offers[0].prices.USD[0]]'",
    ),
    ("# once more: a part is paid for once a day", f"curl -sgi {MATCH} | grep -i parts-cost"),
    ("# prices in a parts list", "v3bridge sheet fill BOM.csv --columns price@100,stock 2>&1 | grep spent"),
    ("", "cat BOM.filled.csv"),
)
LINE, LETTER, MARGIN = 18, 7.3, 16  # pixels
STYLE = """\
rect { fill: #1e2430 }
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d7dde8; white-space: pre }
.c { fill: #8a94a6 }
.t { fill: #9fd8a4 }"""


def record() -> list[tuple[str, str]]:
    """Return the lines of the terminal, each with the class of its text."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(ROOT / "examples/BOM.csv", folder)
        program = folder / "v3bridge"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m proxy "$@"\n')
        program.chmod(0o700)
        environ = os.environ | {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "XDG_STATE_HOME": f"{folder}/state",
            "COLUMNS": "100",
        }
        serve = [*START.split(), "--port", "0", "--admin-port", "0"]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(
            serve, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=quiet, text=True
        ) as server:
            assert server.stdout is not None
            try:
                ready = server.stdout.readline().removesuffix(" Try it:\n")
                address = re.search(r"http://[\d.:]+", ready)
                assert address is not None, ready
                lines = [("c", "# the proxy, on a simulated Nexar API: no account"), ("t", f"$ {START} &")]
                lines += [("o", ready.replace(address[0], URL))]
                for remark, command in COMMANDS:
                    done = subprocess.run(
                        ["sh", "-ec", command.replace(URL, address[0])],
                        cwd=folder,
                        env=environ,
                        stdout=subprocess.PIPE,
                        stderr=quiet,
                        text=True,
                        check=True,
                    )
                    lines += [("o", ""), ("c", remark)] if remark else []
                    lines += [("t", typed if typed[0] == " " else f"$ {typed}") for typed in command.splitlines()]
                    lines += [("o", shown.rstrip()) for shown in done.stdout.splitlines()]
            finally:
                server.terminate()
        return lines


def page() -> str:
    """Return the picture."""
    lines = record()
    width = round(max(len(text) for _, text in lines) * LETTER + 2 * MARGIN)
    height = len(lines) * LINE + 2 * MARGIN
    rows = [
        f'<text x="{MARGIN}" y="{MARGIN + LINE * number - 5}" class="{kind}">{escape(text)}</text>'
        for number, (kind, text) in enumerate(lines, 1)
        if text
    ]
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    title = "<title>The first minute with v3bridge in a terminal</title>"
    return "\n".join(
        [head, title, f"<style>\n{STYLE}\n</style>", '<rect width="100%" height="100%" rx="8"/>', *rows, "</svg>\n"]
    )
