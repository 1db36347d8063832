"""A reply's body as a program gets it: JSON, in a call of a function where it was asked for, or neither. Pure."""

import re
from typing import Any, NamedTuple

import msgspec

from proxy.compare import replies, unknown_uids
from proxy.compare.calls import Call
from proxy.compare.replies import Document, Reply

_PADDED = re.compile(rb"\s*(?:/\*\*/)?\s*([\w$.\[\]]{1,128})\s*\((.*)\)\s*;?\s*", re.DOTALL)
_ERRORS = ("ClientErrorResponse", "ServerErrorResponse")


class Body(msgspec.Struct, frozen=True):
    """A `document`, or the `problem` that there is instead. `function` is what it is handed to, `refused` whether it is
    an error, by its status or by its own word.
    """

    document: Document = Document(None)
    problem: str | None = None
    function: str | None = None
    refused: bool = False


class Side(NamedTuple):
    """A reply and its body, read once. `asked` are the uids that its request is about."""

    reply: Reply
    body: Body
    asked: frozenset[str] = frozenset()


def side(call: Call, reply: Reply) -> Side:
    """A side's reply to a call, ready to be compared."""
    return Side(reply, read(call, reply), unknown_uids.requested(call))


def read(call: Call, reply: Reply) -> Body:
    """The body of a reply to a call."""
    text, function = reply.body, None
    if any(call.values("callback")) and (padded := _PADDED.fullmatch(reply.body)):
        function, text = padded[1].decode("utf-8", "replace"), padded[2]
    try:
        document = replies.read(text)
    except ValueError as error:
        return Body(problem=str(error), function=function, refused=reply.status >= 400)
    return Body(document, None, function, reply.status >= 400 or _says_so(document.value))


def _says_so(value: Any) -> bool:
    """An error whose status is suppressed."""
    return isinstance(value, dict) and value.get("__class__") in _ERRORS
