"""Tests of the spool: lines by key, on disk."""

from proxy.traffic.recording.line_files import Spool


def test_spool_finds_the_latest_line_of_a_key() -> None:
    with Spool() as spool:
        for n in range(1000):
            spool.add(f"key {n % 500}", b"line %d" % n * 50)
        assert len(spool) == 500
        assert spool.get("key 7") == b"line 507" * 50
        assert spool.get("key 500") is None
        spool.add("key 7", b"")
        assert spool.get("key 7") == b""
        assert list(spool)[:2] == [b"line 500" * 50, b"line 501" * 50]
