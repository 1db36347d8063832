"""Judge of responses under faults.

A 200 must equal the response of the baseline phase, which has no faults. An error response must have v3's shape and a
message that an injected fault explains. Errors are texts; without an error the list is empty.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

ERROR_CLASSES = {429: "ClientErrorResponse", 502: "ServerErrorResponse", 503: "ServerErrorResponse"}
EXPIRED_TOKEN = "401 expired"  # kinds of faults after which a new token is needed
LATE = "late"  # not a fault: the machine is too slow
# Error messages of the proxy (docs/explanation/faults.md), and the faults of which one must have been injected.
EXPLAINING_FAULTS: Mapping[str, str] = {
    r"the GraphQL service closed the connection without a response": "reset",
    r"the GraphQL service sent an answer that is cut": "cut",
    r"the GraphQL service sent something that is not its answer \(HTTP 200, [\d,]+ bytes\)": "malformed",
    r"the GraphQL service answered HTTP 200 with HTML instead of GraphQL; check the address in upstream.graphql_url": (
        "malformed"
    ),
    r"the GraphQL service did not answer in time: not whole within \d+ s": f"slow-loris {LATE}",
    r"the GraphQL service was not asked: there was no time left": f"slow-loris {LATE}",
    r"no token of application soak in time": f"{EXPIRED_TOKEN} {LATE}",
    r"the GraphQL service answered with HTTP 50[03]": "5xx",
    r"the GraphQL service failed: Unexpected Execution Error": "5xx",
    r"the GraphQL service asks for fewer requests": "429",
    r"the GraphQL service is not asked for the moment: it failed \d+ times in a row": f"5xx reset cut malformed {LATE}",
    r"the GraphQL service takes no token of application soak: .*": EXPIRED_TOKEN,
    r"application soak has asked for too many tokens": EXPIRED_TOKEN,
    r"the identity service .*": EXPIRED_TOKEN,
}


class ReceivedResponse(NamedTuple):
    """Status, headers and undecoded body of a response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ResponseJudge:
    """Compares responses under faults with those of the baseline phase, by request target, and counts them.

    `baseline_bytes`: size of all baseline responses. `cost`: parts that all responses state in X-Parts-Cost.
    `without_token`: 503 responses because there was no access token.
    """

    def __init__(self) -> None:
        self._baseline: dict[str, Any] = {}
        self.errors: list[str] = []
        self.messages: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.sources: Counter[str] = Counter()
        self.failed_queries = self.without_token = 0
        self.baseline_bytes = 0
        self.cost = 0

    def add_baseline(self, target: str, response: ReceivedResponse) -> Any:
        """Store a response of the baseline phase, which must be a 200 without errors; returns its body, or None."""
        body = _read(response.body)
        if response.status != 200 or body is None or any(result.get("error") for result in _results(body)):
            self.errors.append(f"{target} failed in the baseline phase: {response.status} {response.body[:200]!r}")
            return None
        self._baseline[target] = _comparable(body)
        self.baseline_bytes += len(response.body)
        self.cost += int(response.headers["X-Parts-Cost"])
        return body

    def check(self, target: str, response: ReceivedResponse) -> None:
        """Check and count a response that faults may have affected."""
        self.statuses[response.status] += 1
        self.cost += int(response.headers.get("X-Parts-Cost", 0))
        body = _read(response.body)
        if response.status == 200:
            self.sources[response.headers.get("X-Cache", "none")] += 1
            self.errors.extend(
                f"{target}: {error}" for error in self._compare(_comparable(body), self._baseline[target])
            )
        else:
            self.errors.extend(f"{target}: {error}" for error in self._check_error_shape(response.status, body))

    def unexplained(self, fault_counts: Mapping[str, int]) -> Iterator[str]:
        """List the messages that no fault explains. `fault_counts`: injected faults by kind."""
        for message, count in self.messages.items():
            if not any(fault_counts.get(kind) for kind in _explaining_faults(message).split()):
                yield f"{count} times {message!r}, which no fault explains"

    def _compare(self, body: Any, baseline: Any) -> Iterator[str]:
        """Compare with the baseline; a query of a match may have failed alone."""
        if body == baseline:
            return
        results, expected_results = _results(body), _results(baseline)
        if len(results) != len(expected_results) or {**body, "results": ()} != {**baseline, "results": ()}:
            yield "the response differs from the baseline"
            return
        for position, (result, expected) in enumerate(zip(results, expected_results, strict=True)):
            if result == expected:
                continue
            if result.get("error") and result == {**expected, "items": [], "hits": 0, "error": result["error"]}:
                self.failed_queries += 1
                self.messages[result["error"]] += 1
            else:
                yield f"result {position} differs from the baseline"

    def _check_error_shape(self, status: int, body: Any) -> Iterator[str]:
        if not isinstance(body, dict) or set(body) != {"__class__", "message"}:
            yield f"an error response ({status}) without v3's shape: {str(body)[:200]}"
        elif body["__class__"] != ERROR_CLASSES.get(status):
            yield f"{status} is a {body['__class__']}: {body['message']}"
        else:
            self.messages[body["message"]] += 1
            self.without_token += status == 503 and EXPIRED_TOKEN in _explaining_faults(body["message"])


def _explaining_faults(message: str) -> str:
    """Return the kinds of faults that explain an error message, between blanks."""
    return next((kinds for pattern, kinds in EXPLAINING_FAULTS.items() if re.fullmatch(pattern, message)), "")


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _comparable(body: Any) -> Any:
    """Return the body without the duration, which differs between equal responses."""
    return {name: value for name, value in body.items() if name != "msec"} if isinstance(body, dict) else body


def _results(body: Any) -> list[Any]:
    results = body.get("results") if isinstance(body, dict) else None
    return [result for result in results if isinstance(result, dict)] if isinstance(results, list) else []
