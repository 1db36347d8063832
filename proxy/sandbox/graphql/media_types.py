"""In which media type an answer goes out, and the status that it has in it (GraphQL over HTTP, "Accept" and "Status
Codes"; contract graphql.md §3.3).

Used by the transport. The specification wants a caller that asks for nothing in particular to have
`application/graphql-response+json`; it gets `application/json` here, for the service's clients expect that, and the 400
for a document at fault that they know (contract graphql.md §3.2).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header

GRAPHQL = "application/graphql-response+json"
JSON = "application/json"
HTML = "text/html"

# What every answer is in; to ask for it is no more than to name the type.
_CHARSET = "; charset=utf-8"


@dataclass(frozen=True, slots=True)
class MediaType:
    """What was chosen. `named`: the caller asked for just this, not for anything that there is."""

    name: str
    named: bool

    def status(self, status: int, *, fixed: bool, has_data: bool) -> int:
        """The status that an answer of `status` has. One that is `fixed` is about HTTP or the token, or was chosen."""
        if self.name == GRAPHQL:
            return 400 if status == 200 and not has_data else status
        # Both Hot Chocolate 13 and the specification: a request that could be read, whatever came of it.
        return 200 if self.named and not fixed else status


# For a caller that no type suits.
FALLBACK = MediaType(JSON, named=False)


def chosen(accept: Sequence[str], offered: Iterable[str]) -> MediaType | None:
    """The best of `offered` for a caller with these Accept headers; None if it takes none of them.

    What the caller names comes in the order in which it does, what it takes by a wildcard as it is offered.
    """
    header = ", ".join(accept)
    if not header.strip():
        return MediaType(next(iter(offered)), named=False)
    read = parse_accept_header(header, MIMEAccept)
    taken = MIMEAccept((item.lower().removesuffix(_CHARSET), quality) for item, quality in read)
    listed = list(taken.values())
    best = taken.best_match(sorted(offered, key=lambda name: listed.index(name) if name in listed else len(listed)))
    return None if best is None else MediaType(best, best in listed)
