"""Mappings as data. A folder beside this file is a case, and a new case is a new folder:

request.txt      the target of a v3 request, `apikey` left out; lines after the first are remarks
upstream.json    what the service answers, one item an operation in order
expected.json    the v3 reply; only what stands in it is compared, so a case can look at one field
operations.json  what is asked of the service: the variables, and words that documents must (`asks`) or must not
                 (`omits`) hold
"""

import json
from pathlib import Path
from typing import Any

import pytest
from support import running_proxy, scripted_upstream

CASES = sorted(folder for folder in Path(__file__).parent.iterdir() if (folder / "request.txt").exists())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_the_reply_and_the_operations_are_as_the_case_says(case: Path) -> None:
    target = (case / "request.txt").read_text().splitlines()[0]
    expected_operations = json.loads((case / "operations.json").read_text())
    options = json.loads((case / "settings.json").read_text()) if (case / "settings.json").exists() else {}
    async with scripted_upstream.running() as upstream:
        upstream.says(*json.loads((case / "upstream.json").read_text()))
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url, **options)
        async with running_proxy.running(settings) as client:
            response = await client.get(f"{target}{'&' if '?' in target else '?'}apikey={running_proxy.KEY}")
            reply = await response.json()
    assert _part_of(reply, json.loads((case / "expected.json").read_text()), "reply") == []
    assert len(upstream.asked) == len(expected_operations)
    for asked, expected in zip(upstream.asked, expected_operations, strict=True):
        assert _part_of(asked["variables"], expected["variables"], "variables") == []
        assert asked["operationName"] == expected["operation"]
        words = asked["query"].replace("{", " ").replace("(", " ").split()
        assert [word for word in expected.get("asks", []) if word not in words] == []
        assert [word for word in expected.get("omits", []) if word in words] == []


def _part_of(whole: Any, part: Any, at: str) -> list[str]:
    """Where `part` is not what `whole` holds. Lists must be as long; an object may hold more, unless `"...": false`."""
    if isinstance(part, dict) and isinstance(whole, dict):
        names = {name for name in part if name != "..."}
        extra = sorted(set(whole) - names) if part.get("...") is False else []
        missing = [f"{at}.{name} is missing" for name in names - set(whole)]
        below = [line for name in names & set(whole) for line in _part_of(whole[name], part[name], f"{at}.{name}")]
        return missing + [f"{at}.{name} should not be there" for name in extra] + below
    if isinstance(part, list) and isinstance(whole, list):
        if len(part) != len(whole):
            return [f"{at} has {len(whole)} items, not {len(part)}"]
        return [line for n, (w, p) in enumerate(zip(whole, part, strict=True)) for line in _part_of(w, p, f"{at}[{n}]")]
    same = type(whole) is type(part) and whole == part
    return [] if same else [f"{at} is {whole!r}, not {part!r}"]
