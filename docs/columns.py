"""The page of columns that a parts list can get."""

from proxy.tools.sheet import columns

HEAD = """# Columns

For people who fill a [parts list](parts-list.md): every name that `--columns` and the page take. Separate them
by commas, as in `price@100:EUR,stock:Digi-Key,datasheet`. `v3bridge sheet columns` prints this list.

| column | content | may be followed by | your plan needs |
|---|---|---|---|
"""
OPTIONS = {"quantity": "`@QUANTITY`", "currency": "`:CURRENCY`", "distributor": "`:DISTRIBUTOR`", "spec": "`:NAME`"}


def page() -> str:
    """Return the page, with a row for each kind of column."""
    return HEAD + "".join(_row(name, kind) for name, kind in columns.KINDS.items())


def _row(name: str, kind: columns.ColumnKind) -> str:
    options = " ".join(OPTIONS[each] for each in kind.options)
    return f"| `{name}` | {kind.explanation} | {options} | {kind.feature or ''} |\n"
