"""Excel's escapes in texts, and shared strings."""

from typing import NoReturn
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.sheet.package import exact_workbook

from proxy.tools.sheet.package import strings


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_reads_back_from_xml(text: str) -> None:
    element = ET.fromstring(f'<t a="{strings.escaped(text)}">{strings.escaped(text)}</t>')
    assert strings.unescaped(element.text or "") == text
    assert strings.unescaped(element.attrib["a"]) == text


@pytest.mark.parametrize(
    "text,xml",
    [
        ("a\rb", "a_x000D_b"),
        ("_x000D_", "_x005F_x000D_"),
        ("\x00", "_x0000_"),
        ("\ud800", "_xD800_"),
        ("\uffff", "_xFFFF_"),
        ("snake_x_case", "snake_x_case"),
        ("<&>", "&lt;&amp;&gt;"),
    ],
)
def test_what_xml_cannot_hold_is_escaped_as_excel_does(text: str, xml: str) -> None:
    assert strings.escaped(text) == xml


def test_two_escapes_can_be_one_character() -> None:
    assert strings.unescaped("_xD83D__xDE00_") == "\U0001f600"


class _RefusalError(Exception):
    pass


def _fail(problem: str) -> NoReturn:
    raise _RefusalError(problem)


def test_more_shared_strings_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strings, "STRINGS_MAX", 2)
    with pytest.raises(_RefusalError, match="more than 2 texts"):
        strings.SharedStrings(_fail).load([f'<sst xmlns="{exact_workbook.MAIN}">{"<si/>" * 3}</sst>'.encode()])


def test_shared_strings_take_little_more_memory_than_their_text() -> None:
    shared = strings.SharedStrings(_fail)
    shared.load([f'<sst xmlns="{exact_workbook.MAIN}">'.encode(), *[b"<si><t>part</t></si>"] * 1000, b"</sst>"])
    assert (shared[0], shared[999]) == ("part", "part")
    with pytest.raises(IndexError):
        shared[1000]
