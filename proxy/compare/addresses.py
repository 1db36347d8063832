"""Where a side is, as a person writes it: with /v3 at its end or without. No secret belongs into it."""

import yarl


def base_of(text: str) -> str:
    """The address that paths such as /parts/match are appended to. Raises ValueError for what is none."""
    try:
        url = yarl.URL(text)
        port = url.port
    except ValueError:
        raise ValueError("is no address") from None
    if url.scheme not in ("http", "https") or not url.host or port is None:
        raise ValueError("is no http:// or https:// address")
    if url.user is not None or url.password is not None:
        raise ValueError("holds a name or a password, which everybody sees on a command line")
    if url.query_string or url.fragment:
        raise ValueError("goes on after its path")
    base = str(url).rstrip("/")
    return base if base.endswith("/v3") else f"{base}/v3"
