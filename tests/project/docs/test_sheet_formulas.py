"""The page of the add-ins' functions has all of them, with their arguments."""

import re

from support.commands import ROOT

from proxy.tools.sheet.formulas import add_in_results, login
from proxy.tools.sheet.formulas.functions import FUNCTIONS

PAGE = (ROOT / "docs/how-to/add-in-formulas.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`[A-Z_`, ]+`) \| ([a-z, ]*)\|", PAGE, re.MULTILINE)
SHORT_NAME = re.compile(r"^(NEXAR_SUPPLY|OCTOPART)_")


def test_every_function_has_a_row_with_its_arguments() -> None:
    documented = {name: arguments.strip() for names, arguments in ROWS for name in re.findall(r"`(\w+)`", names)}
    looking_up = {SHORT_NAME.sub("", name): function for name, function in FUNCTIONS.items() if function.looks_up}
    nexar_last = sorted(looking_up.items(), key=lambda item: item[1].dialect == "nexar")
    for name, function in nexar_last:
        arguments = documented[name].split(", ")
        if function.dialect == "nexar" or "distributors" not in function.parameters:
            expected = list(function.parameters)
            assert arguments[: len(expected)] == expected, name
    others = {SHORT_NAME.sub("", name) for name, function in FUNCTIONS.items() if not function.looks_up}
    named = set(re.findall(r"`(?:NEXAR_SUPPLY_|OCTOPART_)?([A-Z_]+)[`(]", PAGE))
    assert others <= named


def test_texts_of_the_add_in_are_quoted() -> None:
    texts = (login.READY, login.REFUSED, login.EXPIRED, add_in_results.NO_RESULT, add_in_results.NO_DATASHEET)
    page = " ".join(PAGE.split())
    assert all(text in page for text in texts)
