"""Lines by key, on disk."""

from proxy.compare.recording.line_files import Spool


def test_lines_are_found_by_their_keys_and_the_later_counts() -> None:
    with Spool() as spool:
        for n in range(1000):
            spool.add(f"key {n % 500}", b"line %d" % n * 50)
        assert len(spool) == 500
        assert spool.get("key 7") == b"line 507" * 50
        assert spool.get("key 500") is None
        spool.add("key 7", b"")
        assert spool.get("key 7") == b""
        assert list(spool)[:2] == [b"line 500" * 50, b"line 501" * 50]
