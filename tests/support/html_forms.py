"""The forms of a page, as a browser without scripts has them."""

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Form:
    """Where it goes, and what it carries already."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[tuple[str, str]] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._open: Form | None = None
        self._text: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and given["method"] == "post":
            self._open = Form(given["action"])
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


def all_forms(page: str) -> list[Form]:
    """The forms of a page that post something, first to last."""
    reader = _Reader()
    reader.feed(page)
    return reader.forms


def first_form(page: str) -> Form:
    """The form that a page begins with."""
    return all_forms(page)[0]
