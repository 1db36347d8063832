"""Tests of lists of URLs."""

from typing import Any


def test_urls_targets_and_request_lines_are_read(read_source: Any) -> None:
    lines = [
        "# asked last week",
        "https://octopart.com/api/v3/parts/search?q=a+b&apikey=K",
        "  octopart.com/api/v3/parts/search?q=a+b  ",
        "/v3/parts/search?q=a%20b",
        "GET /v3/parts/search?q=a+b HTTP/1.1",
        "GET https://octopart.com/api/v3/parts/search?q=a+b",
        '"http://127.0.0.1:8080/v3/parts/search?q=a+b",',
        "<http://127.0.0.1:8080/v3/parts/search?q=a b>",
        "HTTPS://octopart.com/api/v3/parts/search/?q=a+b",
    ]
    found = read_source("urls.txt", "\r\n".join(lines))
    assert found.targets == ["/parts/search?q=a%20b"] * 8
    assert (found.source.kind, found.junk, found.source.seconds) == ("urls", [], None)


def test_counts_of_uniq_are_used(read_source: Any) -> None:
    found = read_source("urls.txt", "     12 /v3/brands/search?q=x\n      1 /v3/brands/search?q=y\n")
    assert [request.times for request in found.requests] == [12, 1]


def test_raw_queries_keep_spaces_and_quotes(read_source: Any) -> None:
    (request,) = read_source(
        "urls.txt", 'http://h/v3/parts/match?queries=[{"mpn":"X 1","sku":"a\\"b"}]&apikey=K'
    ).requests
    assert request.query == (("queries", '[{"mpn":"X 1","sku":"a\\"b"}]'),)


def test_non_urls_are_junk_and_non_v3_urls_skipped(read_source: Any) -> None:
    found = read_source(
        "urls.txt", "/v3/brands/search?q=x\nhello world\nhttps://example.com/\nhttps://example.com?a=/v3/brands/x\n"
    )
    assert found.junk == [("is no URL", 1, "urls.txt:2")]
    assert sum(times for _, times, _ in found.skipped) == 2


def test_utf_16_is_read(read_source: Any) -> None:
    assert read_source("urls.txt", "/v3/brands/search?q=Ω\r\n/v3/brands/x\r\n".encode("utf-16")).targets == [
        "/brands/search?q=%CE%A9",
        "/brands/x",
    ]
