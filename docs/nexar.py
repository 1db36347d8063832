"""The page of what is known of Nexar: the assumptions that `v3bridge conform` tests, and how to test them."""

from pathlib import Path

from docs import citations
from proxy.tools.conform import assumptions, command

INTRODUCTION = f"""# What is known of Nexar

For those who want to know what v3bridge takes for granted. It was written from public documents and recorded responses;
no test has run against Nexar yet. So each assumption that changes a value or a bill is listed here with its evidence,
and `v3bridge conform` tests it, on the sandbox for nothing or with your account for at most {command.BUDGET} parts.

## Test them

```sh
v3bridge conform --against sandbox
```

All assumptions hold there. With your account, where `our.yaml` is the configuration of your service:

```text
v3bridge conform --against our.yaml --json > observed.json
```

The command says how many requests it sends and what they cost at most, and asks first. Without a terminal it needs
`--budget` or `--yes`. Most requests are free; cheap ones come first; none is repeated. Their parts are booked as usage
of the application. Please open an issue with `observed.json`: it holds no credentials, no ids and no names.

| verdict | meaning |
|---|---|
| confirmed | Nexar behaves as assumed |
| contradicted | it does not; `observed` says how, and the list below what depends on it |
| not tested | the reason stands beside it: a feature, an application, the budget, a part that Nexar does not have |

Two assumptions need an application of their own in the configuration: one without parts (`parts: 0`), and one whose
plan lacks TECH_SPECS (`features`). `--application` names the application under test; if omitted, it is the first
one with parts.

The exit code is 0 if all that was tested is confirmed, 1 if one is contradicted, 2 after a mistake or if you declined
the cost, and 3 if nothing could be tested.

## The assumptions

The evidence is a section of the [contract](../contract/README.md), and its kind: recorded (REC), documented (DOC), in
the schema (SDL), inferred (INF), or our own guess (OWN). What no cheap request can test is
[still unknown](../contract/graphql.md#11-still-unknown). "Parts" is the most that a test costs; assumptions with the
same request share it.

| assumption | evidence | parts | what depends on it |
|---|---|---|---|
"""


def page() -> str:
    """Return the page, with a row for each assumption."""
    rows = (
        f"| `{each.name}`: {each.question} | graphql.md {each.evidence} | {each.probe.parts} | {each.matters} |\n"
        for each in assumptions.ALL
    )
    return citations.linked(INTRODUCTION + "".join(rows), Path(__file__).parent)
