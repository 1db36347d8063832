"""The page of what is assumed of the Nexar services."""

from pathlib import Path

from docs import citations
from proxy.tools.conform import assumptions, command

INTRODUCTION = f"""# Compatibility

What v3bridge assumes about the Nexar services, where it changes a value or a bill. Each assumption holds on the
sandbox; none has been observed on Nexar yet. [`v3bridge conform`](../how-to/conform.md) tests them, for at most
{command.BUDGET} parts. The marks of the evidence are those of the [contract](../../contract/README.md); OWN is a guess
without a public source. Assumptions with the same requests cost their parts once. This page is generated from
`proxy/tools/conform/assumptions.py`.

| assumption | evidence | parts at most | what depends on it |
|---|---|---|---|
"""


def page() -> str:
    """Return the page, with a row for each assumption."""
    rows = (
        f"| `{each.name}`: {each.question} | graphql.md {each.evidence} | {each.parts} | {each.matters} |\n"
        for each in assumptions.ALL
    )
    return citations.linked(INTRODUCTION + "".join(rows), Path(__file__).parent / "reference")
