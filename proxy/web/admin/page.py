"""A page of the admin interface, and an action of its forms and of scripts, as values that pages/__init__.py lists, and
what they work on."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from proxy import errors
from proxy.kit.clock import Clock
from proxy.web.explaining import Explaining
from proxy.web.service import RunningService

Query = Mapping[str, str]
"""Parameters of a page's URL, or fields of a form; the first of a repeated one."""


@dataclass(frozen=True, slots=True)
class AdminContext:
    """Dependencies of pages and actions."""

    service: RunningService
    clock: Clock
    explaining: Explaining = field(default_factory=Explaining)
    # Held for a report of clients: with thousands of user agents one takes seconds and 100 MB.
    client_reports: asyncio.Lock = field(default_factory=asyncio.Lock)


class PageParameter(NamedTuple):
    """A parameter of a page or an action, as the OpenAPI document describes it."""

    name: str
    description: str
    required: bool = False


class RenderedDocument(NamedTuple):
    """A whole HTML document with a Content-Security-Policy of its own."""

    html: str
    policy: str


class PageData(msgspec.Struct, frozen=True):
    """Base class of a page's data: what its template shows and its JSON holds."""


class ActionResult(msgspec.Struct, frozen=True):
    """Result of an action: a sentence for people. `shown` is text that is shown once and kept nowhere: a new API
    key, or lines to paste."""

    message: str
    shown: str = ""


@dataclass(frozen=True, slots=True)
class AdminPage:
    """A page: `data` returns a `struct`, which is shown by `templates/NAME.html` at `path` and is JSON at `/NAME.json`.

    `summary` is its description in the OpenAPI document. `data` raises errors.BadRequest for wrong parameters. `csv`
    makes a file for spreadsheets at `/NAME.csv`, in chunks. `posts`: parameters are accepted by POST as well, because
    they may hold what must not stand in a URL.
    """

    name: str
    title: str
    summary: str
    struct: type[PageData]
    data: Callable[[AdminContext, Query], Awaitable[PageData]]
    path: str = ""
    parameters: tuple[PageParameter, ...] = ()
    posts: bool = False
    csv: Callable[[AdminContext, Query], Awaitable[list[bytes]]] | None = None

    @property
    def url(self) -> str:
        """Path of the HTML page."""
        return self.path or f"/{self.name}"

    @property
    def paths(self) -> set[str]:
        """Paths that show the page: its own, and that of its name."""
        return {self.url, f"/{self.name}"}


@dataclass(frozen=True, slots=True)
class AdminAction:
    """A change, by POST to `path`: from a form of the page `page` with the CSRF token, or by a script with the bearer
    token. `run` returns an ActionResult, and raises BridgeError with the reason why it could not be done."""

    path: str
    page: str
    summary: str
    run: Callable[[AdminContext, Query], Awaitable[ActionResult]]
    parameters: tuple[PageParameter, ...] = ()


@dataclass(frozen=True, slots=True)
class AdminDocument:
    """An HTML document at `path` that has no layout of this interface. `render` raises BridgeError where there is
    none."""

    path: str
    summary: str
    render: Callable[[AdminContext], Awaitable[RenderedDocument]]


def whole_number(query: Query, name: str, default: int, most: int) -> int:
    """Return a parameter from 1 to `most`. Raises BadRequest."""
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and 1 <= int(text) <= most):
        raise errors.BadRequest(f"{name} must be a whole number between 1 and {most}")
    return int(text)
