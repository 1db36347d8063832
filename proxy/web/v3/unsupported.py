"""X-V3-Unsupported: which parameters of a request the response leaves out of account.

A list of names, comma-separated (RFC 9110 §5.6.1), each as in the query string without its last `[]`; a value follows
after `=` where the name alone would not tell. Everything but letters, digits and `-._~[]=` is percent-encoded, so that
nothing a client sends can end the header. The list is bounded; `+3` at its end stands for three more names.
"""

from collections.abc import Iterable
from urllib.parse import quote

from multidict import istr

HEADER = istr("X-V3-Unsupported")
SAFE = "[]="
NAME_MAX = 200  # characters of one name; a longer one is cut
LENGTH_MAX = 2_000  # characters of the header


def header(names: Iterable[str]) -> dict[str, str]:
    """The header that names these; none where there is nothing to name."""
    distinct = list(dict.fromkeys(name[:NAME_MAX] for name in names))
    shown: list[str] = []
    length = 0
    for name in distinct:  # what is not shown is counted only: there can be thousands
        encoded = _encoded(name)
        length += len(encoded) + 2
        if length > LENGTH_MAX:
            shown.append(f"+{len(distinct) - len(shown)}")
            break
        shown.append(encoded)
    return {HEADER: ", ".join(shown)} if shown else {}


def _encoded(name: str) -> str:
    """Percent-encoded UTF-8; a name that is too long ends where a whole character does."""
    encoded = quote(name, safe=SAFE, errors="replace")
    return encoded if len(encoded) <= NAME_MAX else encoded[:NAME_MAX].rpartition("%")[0]
