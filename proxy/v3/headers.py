"""Headers that v3bridge adds to v3's requests and responses."""

from collections.abc import Iterable
from urllib.parse import quote

from multidict import istr

X_V3_UNSUPPORTED = istr("X-V3-Unsupported")
SAFE = "[]="  # not percent-encoded in X-V3-Unsupported
NAME_MAX = 200  # characters of one name; a longer one is cut
LENGTH_MAX = 2_000  # characters of the header


def unsupported(names: Iterable[str]) -> dict[str, str]:
    """Return the header that names the parameters of a request that were ignored; none if there are none.

    A comma-separated list (RFC 9110 §5.6.1): each as in the query string without its last `[]`, with `=value` where the
    name alone is not enough. Everything but letters, digits and `-._~[]=` is percent-encoded, so that a client cannot
    inject a header. The list is bounded; `+3` at its end stands for three more names.
    """
    distinct = list(dict.fromkeys(name[:NAME_MAX] for name in names))
    shown: list[str] = []
    length = 0
    for name in distinct:  # names beyond the bound are not encoded: there can be thousands
        encoded = quote(name, safe=SAFE, errors="replace")
        if len(encoded) > NAME_MAX:  # cut at the last escape, which may be half
            encoded = encoded[:NAME_MAX].rpartition("%")[0]
        length += len(encoded) + 2
        if length > LENGTH_MAX:
            shown.append(f"+{len(distinct) - len(shown)}")
            break
        shown.append(encoded)
    return {X_V3_UNSUPPORTED: ", ".join(shown)} if shown else {}
