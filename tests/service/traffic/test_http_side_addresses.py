"""Tests of the notations of a side's address."""

import pytest

from proxy.traffic.http_side import base_url


@pytest.mark.parametrize(
    "text,base",
    [
        ("https://old/v3", "https://old/v3"),
        ("https://old/v3/", "https://old/v3"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v3"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v3"),
        ("https://host/api/v3", "https://host/api/v3"),
        ("https://host/mounted", "https://host/mounted/v3"),
        ("http://[::1]:8080", "http://[::1]:8080/v3"),
    ],
)
def test_v3_path_is_appended_once(text: str, base: str) -> None:
    assert base_url(text) == base


@pytest.mark.parametrize(
    "text,why",
    [
        ("old/v3", "is no http:// or https:// address"),
        ("ftp://old/v3", "is no http:// or https:// address"),
        ("http://", "is no http:// or https:// address"),
        ("http://host:port", "is no address"),
        ("http://host:99999999", "is no address"),
        ("https://me:secret@old/v3", "holds a name or a password, which everybody sees on a command line"),
        ("https://old/v3?apikey=secret", "goes on after its path"),
    ],
)
def test_invalid_address_error_has_no_secrets(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why.split(",", maxsplit=1)[0].replace("(", r"\(")) as raised:
        base_url(text)
    assert "secret" not in str(raised.value)
