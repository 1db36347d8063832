"""Tests of the service that a comparison starts itself: the candidate, without its optional features."""

import hashlib
import json
from pathlib import Path
from typing import Any

SEARCH, PART, BRANDS = "/parts/search?q=LM324&limit=1", "/parts/0123456789abcdef?", "/brands/search?q=Texas"
REFUSED = "(HTTP 403): Forbidden request"  # the words of v3 (contract v3-rest.md §5)


async def test_keys_of_the_service_that_no_request_is_sent_with_are_hidden(
    run_command: Any, services: Any, tmp_path: Path
) -> None:
    """As a client that once sent the key of another one in a parameter; the configuration has its digest only."""
    other = "the-key-of-an0ther-client"
    digest = f"sha256:{hashlib.sha256(other.encode()).hexdigest()}"
    (tmp_path / "own.yaml").write_text(f"""
upstream: sandbox
store: "memory:"
applications: {{demo: {{apikeys: ["EXAMPLE_KEY", "{digest}"]}}}}
""")
    (tmp_path / "urls.txt").write_text(f"/v3/parts/search?apikey=EXAMPLE_KEY&q={other}&limit=1\n")
    found = await run_command(
        *("compare", "--baseline", services.baseline_url, "--config", "own.yaml", "--requests", "urls.txt"),
        *("--rules", "fast.yaml", "--json", "result.json", "--record", "recorded.jsonl"),
    )
    assert found.code in (0, 1, 2), found
    recorded = (tmp_path / "recorded.jsonl").read_text()
    texts = [recorded, (tmp_path / "result.json").read_text("utf-8"), found.out, found.err]
    assert all("/parts/search" in text for text in texts[:2])
    assert [text for text in texts if other in text] == []


def log_line(request: Any, key: Any) -> Any:
    """Return an access log line of nginx."""
    request_line = f'"GET /api/v3{request}&apikey={key} HTTP/1.1" 200 2326 "-" "kicost/1.1"'
    return f"203.0.113.9 - - [10/Oct/2018:13:55:36 +0000] {request_line}\n"


async def test_clients_with_unknown_keys_are_named(run_command: Any, tmp_path: Path) -> None:
    key = "c4n4ry-of-nobody"
    lines = [log_line(request, key) for request in (SEARCH, PART, BRANDS, SEARCH)]
    (tmp_path / "access.log").write_text("".join(lines))
    found = await run_command("compare", "--baseline", "sandbox", "--requests", "access.log", "--json", "result.json")
    assert found.code == 2, found
    result = json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert result["groups"] == []  # one cause, not a difference at each endpoint
    (failure,) = result["failures"]
    assert (failure["reason"], failure["requests"]) == (
        f"the candidate refuses the key of key 1 {REFUSED}",
        3,
    )
    shown = hashlib.sha256(key.encode()).hexdigest()[:4]
    first = found.out.partition("Next steps")[2].splitlines()[1]
    assert f"key 1 (fingerprint {shown}, access.log:1 to access.log:4, kicost/1.1)" in " ".join(found.out.split())
    assert first.startswith("1. The candidate refuses the key of key 1")
    assert "c4n4ry" not in found.out + found.err + json.dumps(result)
