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

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            assert given["method"] == "post"
            self.forms.append(Form(given["action"]))
        elif tag == "input":
            self.forms[-1].fields[given["name"]] = given.get("value", "")
        elif tag == "button":
            self.forms[-1].buttons.append((given.get("name", ""), given.get("value", "")))


def only_form(page: str) -> Form:
    """The form of a page that has one."""
    reader = _Reader()
    reader.feed(page)
    (form,) = reader.forms
    return form
