"""Reads the forms of an HTML page."""

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class HtmlForm:
    """Action, field values and buttons of a form."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[tuple[str, str]] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[HtmlForm] = []
        self._open: HtmlForm | None = None
        self._text: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and given.get("method") == "post":
            self._open = HtmlForm(given["action"])
            self.forms.append(self._open)
        elif self._open is None:
            return
        elif tag == "input":
            if given.get("type") not in ("checkbox", "radio") or "checked" in given:
                self._open.fields[given["name"]] = given.get("value", "")
        elif tag == "textarea":
            self._text = given["name"]
            self._open.fields[self._text] = ""
        elif tag == "button":
            self._open.buttons.append((given.get("name", ""), given.get("value", "")))

    def handle_data(self, data: str) -> None:
        if self._open is not None and self._text is not None:
            self._open.fields[self._text] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._text = None
        elif tag == "form":
            self._open = None


def all_forms(page: str) -> list[HtmlForm]:
    """The forms of a page with method POST, in order."""
    reader = _Reader()
    reader.feed(page)
    return reader.forms


def first_form(page: str) -> HtmlForm:
    return all_forms(page)[0]
