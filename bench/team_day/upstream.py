"""Canned upstream of the team's day: each part number matches one to four parts of its own, and `limit` holds.

Run as `python -m bench.team_day.upstream`; prints its port. `GET /count` returns requests and parts, as that of
bench/upstream.py does.
"""

import asyncio
from typing import Any

from bench import canned, upstream
from bench.team_day import programs

HITS = 250


class DayUpstream(upstream.CannedUpstream):
    """Connection that responds with the parts of the numbers, uids and words in a request."""

    def respond(self, variables: dict[str, Any], body: bytes) -> tuple[int, bytes]:
        """Return the number of parts of a response, and its bytes."""
        if "queries" in variables:
            results = [
                _parts(number := int(query["mpn"][2:]), query["start"], query["limit"], programs.matching(number), body)
                for query in variables["queries"]
            ]
            numbers = [int(query["mpn"][2:]) for query in variables["queries"]]
            matches = [
                b'{"error":null,"hits":%d,"parts":[%s]}' % (programs.matching(number), b",".join(parts))
                for number, parts in zip(numbers, results, strict=True)
            ]
            return sum(map(len, results)), _data(b"supMultiMatch", b"[%s]" % b",".join(matches))
        if "ids" in variables:
            parts = [_part(int(uid[:12], 16), int(uid[12:], 16), body) for uid in variables["ids"]]
            return len(parts), _data(b"supParts", b"[%s]" % b",".join(parts))
        if "q" not in variables:
            return 0, _data(b"supCategories", b"[]")  # the readiness probe
        if variables["q"].startswith("TD"):
            number = int(variables["q"][2:])
            hits, name = programs.matching(number), b"supSearchMpn"
            parts = _parts(number, variables["start"], variables["limit"], hits, body)
        else:
            word, hits, name = int(variables["q"][4:]), HITS, b"supSearch"
            places = range(variables["start"], variables["start"] + variables["limit"])
            parts = [_part(programs.found_number(word, place), 0, body) for place in places]
        results_ = b",".join(b'{"akaMpn":null,"description":"","part":%s}' % part for part in parts)
        return len(parts), _data(name, b'{"hits":%d,"results":[%s]}' % (hits, results_))


def _parts(number: int, start: int, limit: int, hits: int, body: bytes) -> list[bytes]:
    return [_part(number, place, body) for place in range(start, min(start + limit, hits))]


def _part(number: int, place: int, body: bytes) -> bytes:
    uid = programs.uid(number, place).encode()
    return (
        canned.selected_part(body)
        .replace(canned.MPN, b'"mpn":"%s"' % programs.mpn(number).encode())
        .replace(b'"v3uid":"0000000000000000"', b'"v3uid":"%s"' % uid)
    )


def _data(name: bytes, value: bytes) -> bytes:
    return upstream.response(b'{"data":{"%s":%s}}' % (name, value))


if __name__ == "__main__":
    asyncio.run(upstream.main(connection=DayUpstream))
