"""A call that was answered, as the web hands it over: the client has its reply, or is being sent it."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from proxy.compare.replies import Reply


class Seen(NamedTuple):
    """`target` is the request target as it came, apikey and all: it is held in memory only, until the call is compared.

    `ask_new` is there where the old service has answered: it asks the new way. It gives None where that has nothing but
    an answer of a while ago, and raises nothing but what a bug does.
    """

    application: str
    target: str
    reply: Reply
    at: float
    ask_new: Callable[[], Awaitable[Reply | None]] | None = None
