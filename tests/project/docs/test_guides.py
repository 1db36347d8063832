"""How-to guides: commands exist with the options shown, and configurations load."""

import re
import shlex
from pathlib import Path

import pytest

from proxy.config import loader

from .conftest import PAGES, ROOT, Page

REFERENCE = "docs/reference/command-line.md"
PROGRAM = re.compile(r"^(?:\S*/)?(v3bridge|nexar-sandbox)$")
SECRETS = {"NEXAR_CLIENT_ID": "an-id", "NEXAR_CLIENT_SECRET": "a-secret"}


def _options(pages: dict[str, Page]) -> dict[str, set[str]]:
    """The options of every command, of the reference."""
    sections = re.split(r"^## ", pages[REFERENCE].text, flags=re.MULTILINE)[1:]
    return {
        text.partition("\n")[0].removeprefix("v3bridge "): {
            option
            for line in text.splitlines()
            if line.startswith(("| ", "Also "))
            for option in re.findall(r"`(--[\w-]+)`", line.partition(" | ")[0])
        }
        for text in sections
    }


def _commands(page: Page) -> list[list[str]]:
    """The words of every command of the project in shell blocks of a page."""
    return _words([line for block in page.blocks("sh") for line in block.text.splitlines()])


def _words(lines: list[str]) -> list[list[str]]:
    words = [shlex.split(line, comments=True) for line in lines if "v3bridge " in line or "nexar-sandbox " in line]
    programs = [(PROGRAM.match(each[0]), each) for each in words if each]
    return [each if found[1] == "nexar-sandbox" else each[1:] for found, each in programs if found]


@pytest.mark.parametrize("name", [name for name in sorted(PAGES) if _commands(PAGES[name])])
def test_commands_of_the_page_exist_with_their_options(pages: dict[str, Page], name: str) -> None:
    _check_options(pages, _commands(pages[name]))


def test_commands_of_the_unit_exist_with_their_options(pages: dict[str, Page]) -> None:
    unit = (ROOT / "deploy/v3bridge.service").read_text(encoding="utf-8")
    commands = _words(re.findall(r"^Exec\w+=(.+)$", unit, re.MULTILINE))
    assert [words[0] for words in commands] == ["serve", "reload"]
    _check_options(pages, commands)


def _check_options(pages: dict[str, Page], commands: list[list[str]]) -> None:
    known = _options(pages)
    for words in commands:
        command = next((each for each in known if words[: len(each.split())] == each.split()), None)
        assert command is not None, words
        assert {word for word in words if word.startswith("--")} <= known[command], words


def test_configuration_for_real_credentials_loads(pages: dict[str, Page], tmp_path: Path) -> None:
    (block,) = pages["docs/how-to/connect.md"].blocks("yaml", "our.yaml")
    file = tmp_path / "our.yaml"
    file.write_text(block.text)
    loaded = loader.load(file, SECRETS).applications["bom-tool"]
    assert (loaded.parts, loaded.features) == (100, "all")
