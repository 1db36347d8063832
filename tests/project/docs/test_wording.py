"""Pages use the terms of docs/glossary.md, not the words that it replaces where these are unambiguous."""

import re

import pytest

from .conftest import PAGES, Page

# The glossary has these words itself; the changelog and the results are records.
EXEMPT = {"docs/glossary.md", "CHANGELOG.md", "bench/RESULTS.md"}
REPLACED = [
    r"told apart",
    r"stand-?ins?\b",
    r"stands? in\b",
    r"asked again",
    r"asked anew",
    r"left alone",
    r"in peace\b",
    r"kept answers?",
    r"known answers?",
    r"shared work",
    r"in doubt\b",
    r"old side",
    r"new side",
    r"other side",
    r"both sides ask",
    r"witness",
    r"unrest",
    r"wavers",
    r"house rules?",
    r"rulebooks?",
    r"errands?\b",
    r"lanes?\b",
    r"old calls?",
    r"left out of account",
    r"in trouble\b",
    r"own trouble",
    r"met with",
    r"asked for\b",
    r"who asked",
    r"what became of",
    r"says so\b",
    r"whoever",
    r"nobody",
    r"somebody",
    r"anew\b",
    r"goes on from",
    r"at worst",
    r"rules? (?:hid|hides?)\b",
    r"came to\b",
]
WORD = re.compile(rf"\b(?:{'|'.join(REPLACED)})", re.IGNORECASE)
CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
# "Account" alone has several meanings: say whose it is.
ACCOUNT = re.compile(r"(?<!quota )(?<!Nexar )\baccounts?\b(?! and an organization| to first)", re.IGNORECASE)
# The contract quotes the vendor and names files of other projects.
NAMES = sorted(name for name in PAGES.keys() - EXEMPT if not name.startswith("contract/"))


def _prose(page: Page) -> str:
    """The page without code, each paragraph on one line."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", CODE.sub("", page.text))


@pytest.mark.parametrize("name", NAMES)
def test_page_avoids_words_that_the_glossary_replaces(name: str) -> None:
    assert WORD.findall(_prose(PAGES[name])) == []


@pytest.mark.parametrize("name", NAMES)
def test_page_qualifies_every_account(name: str) -> None:
    assert ACCOUNT.findall(_prose(PAGES[name])) == []


@pytest.mark.parametrize("name", sorted(PAGES.keys() - {"CHANGELOG.md"}))
def test_headings_are_no_questions(name: str) -> None:
    heads = re.findall(r"^#+ (.+)$", CODE.sub("", PAGES[name].text), re.MULTILINE)
    assert [head for head in heads if head.endswith("?") or re.match(r"(Who|What is|How it)\b", head)] == []
