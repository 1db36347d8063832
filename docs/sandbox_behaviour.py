"""The page of the sandbox's behaviours and deviations, made of their declarations: `python -m docs.sandbox_behaviour`.

Prints docs/reference/sandbox-behaviour.md; tests/project/docs holds the page to it.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, get_type_hints

import orjson

from nexar_sandbox.behaviour import Behaviour
from nexar_sandbox.deviations import DEVIATIONS

HEAD = """# Behaviours and deviations of the sandbox

The sandbox behaves as Nexar's services are known to, or as is assumed where nothing is known. A deviation changes one
such behaviour, to show what a client makes of it, and that `v3bridge conform` finds it:

```sh
v3bridge sandbox --port 8081 --deviation part-limit-status --deviation token-header
```

A deviation has the name of the assumption that it contradicts. This page is generated from the program. A test fails
while it is stale; this renews it:

```sh
python -m docs.sandbox_behaviour > docs/reference/sandbox-behaviour.md
```

In a test, `settings.SandboxSettings(behaviour=behaviour.Behaviour(...))` sets any behaviour to any value.

| deviation | behaviour | meaning | default | with the deviation |
|---|---|---|---|---|
"""
ESCAPED = str.maketrans({"|": "\\|", "\n": " "})


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(_rows())


def _rows() -> Iterator[str]:
    hints = get_type_hints(Behaviour, include_extras=True)
    defaults = dataclasses.asdict(Behaviour())
    for name, changes in DEVIATIONS.items():
        for field, value in changes.items():
            (meaning,) = hints[field].__metadata__
            cells = (f"`{name}`", f"`{field}`", meaning, _value(defaults[field]), _value(value))
            yield f"| {' | '.join(cell.translate(ESCAPED) for cell in cells)} |\n"


def _value(value: Any) -> str:
    text = orjson.dumps(value, default=list).decode()
    return f"`` {text} ``" if "`" in text else f"`{text}`"


if __name__ == "__main__":
    print(page(), end="")
