"""Is a reply right? A 200 is what was answered in peace; an error has v3's shape, and a fault that explains it.

Findings are texts for people; none is good.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

CLASSES = {429: "ClientErrorResponse", 502: "ServerErrorResponse", 503: "ServerErrorResponse"}
TOKEN = "401 expired"
LATE = "late"  # no fault: a machine that is too slow
# What the proxy says of a failure (docs/explanation/faults.md), and the faults of which one must have struck.
EXPLAINED: Mapping[str, str] = {
    r"the GraphQL service broke the connection off without an answer": "reset",
    r"the GraphQL service sent an answer that is cut": "cut",
    r"the GraphQL service sent something that is not its answer \(HTTP 200, \d+ bytes\)": "malformed",
    r"the GraphQL service answered HTTP 200 with HTML instead of GraphQL; check the address in upstream.graphql_url": (
        "malformed"
    ),
    r"the GraphQL service did not answer in time: not whole within \d+ s": f"slow-loris {LATE}",
    r"the GraphQL service was not asked: there was no time left": f"slow-loris {LATE}",
    r"no token of application soak in time": f"{TOKEN} {LATE}",
    r"the GraphQL service answered with HTTP 50[03]": "5xx",
    r"the GraphQL service failed: Unexpected Execution Error": "5xx",
    r"the GraphQL service asks for fewer requests": "429",
    r"the GraphQL service is not asked for the moment: it failed \d+ times in a row": f"5xx reset cut malformed {LATE}",
    r"the GraphQL service takes no token of application soak: .*": TOKEN,
    r"application soak has asked for too many tokens": TOKEN,
    r"the identity service .*": TOKEN,
}


class Reply(NamedTuple):
    """A reply as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ResponseJudge:
    """Knows the answers given in peace, by request target, `learned` bytes in all. Counts what it sees."""

    def __init__(self) -> None:
        self._truth: dict[str, Any] = {}
        self.findings: list[str] = []
        self.messages: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.sources: Counter[str] = Counter()
        self.failed_queries = 0
        self.learned = 0
        self.cost = 0

    def learn(self, target: str, reply: Reply) -> Any:
        """An answer given in peace, which must be a 200 without errors; its body, or None."""
        body = _read(reply.body)
        if reply.status != 200 or body is None or any(result.get("error") for result in _results(body)):
            self.findings.append(f"{target} was not answered in peace: {reply.status} {reply.body[:200]!r}")
            return None
        self._truth[target] = _lasting(body)
        self.learned += len(reply.body)
        self.cost += int(reply.headers["X-Parts-Cost"])
        return body

    def see(self, target: str, reply: Reply) -> None:
        """A reply that may have met a fault."""
        self.statuses[reply.status] += 1
        self.cost += int(reply.headers.get("X-Parts-Cost", 0))
        body = _read(reply.body)
        if reply.status == 200:
            self.sources[reply.headers.get("X-Cache", "none")] += 1
            self.findings.extend(f"{target}: {what}" for what in self._wrong(_lasting(body), self._truth[target]))
        else:
            self.findings.extend(f"{target}: {what}" for what in self._misshapen(reply.status, body))

    def unexplained(self, strikes: Mapping[str, int]) -> Iterator[str]:
        """Messages that no fault accounts for, given how often each kind has struck."""
        for message, count in self.messages.items():
            kinds = next((kinds for text, kinds in EXPLAINED.items() if re.fullmatch(text, message)), "")
            if not any(strikes.get(kind) for kind in kinds.split()):
                yield f"{count} times {message!r}, which no fault explains"

    def _wrong(self, body: Any, truth: Any) -> Iterator[str]:
        """What differs from the truth, but for queries of a match that failed by themselves."""
        if body == truth:
            return
        results, wanted = _results(body), _results(truth)
        if len(results) != len(wanted) or {**body, "results": ()} != {**truth, "results": ()}:
            yield "another answer than in peace"
            return
        for position, (result, right) in enumerate(zip(results, wanted, strict=True)):
            if result == right:
                continue
            if result.get("error") and result == {**right, "items": [], "hits": 0, "error": result["error"]}:
                self.failed_queries += 1
                self.messages[result["error"]] += 1
            else:
                yield f"result {position} is another than in peace"

    def _misshapen(self, status: int, body: Any) -> Iterator[str]:
        if not isinstance(body, dict) or set(body) != {"__class__", "message"}:
            yield f"an error ({status}) that has not v3's shape: {str(body)[:200]}"
        elif body["__class__"] != CLASSES.get(status):
            yield f"{status} is a {body['__class__']}: {body['message']}"
        else:
            self.messages[body["message"]] += 1


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _lasting(body: Any) -> Any:
    """Without what differs from one time to the next."""
    return {name: value for name, value in body.items() if name != "msec"} if isinstance(body, dict) else body


def _results(body: Any) -> list[Any]:
    found = body.get("results") if isinstance(body, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
