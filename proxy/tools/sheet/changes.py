"""What differs from the columns that a list holds from an earlier run. Pure: nothing else is kept of it."""

from collections.abc import Mapping, Sequence
from decimal import Decimal, DecimalException

from proxy.tools.sheet.cell_texts import Cell
from proxy.tools.sheet.columns import CellValue, ColumnSpec
from proxy.tools.sheet.lines import Line, text_of

_PRICED = ("price", "total")
_SHARE_MIN = Decimal("0.0005")  # of a price, below which a change is that of its rounding


def changes(
    line: Line, row: Sequence[Cell], places: Mapping[ColumnSpec, int], cells: Mapping[int, CellValue]
) -> list[str]:
    """Return what has changed on a line; `places` are the columns of the earlier run, `cells` the new values."""
    found: list[str] = []
    for spec, place in places.items():
        old, new = text_of(row[place]).strip() if place < len(row) else "", cells.get(place)
        if old and (text := _change(spec, old, new)):
            found.append(f"{spec.heading.partition(' ')[2]} {text}")
    if not found:
        return []
    choice = line.choices[0]
    return [f"row {line.row}, {choice.mpn or choice.sku}: {', '.join(found)}"]


def _change(spec: ColumnSpec, old: str, new: CellValue) -> str:
    before, after = _number(old), _number(new)
    arrow = f"{old} → {'none' if new in (None, '') else new}"
    if spec.kind in ("mpn", "manufacturer"):
        return arrow if old != new else ""
    if spec.kind == "stock":
        was, is_there = old == "Yes" or bool(before), new == "Yes" or bool(after)
        return f"gone, was {old}" if was and not is_there else ""
    if before is None or before == after or spec.kind not in (*_PRICED, "lead_time"):
        return ""
    if spec.kind == "lead_time" or after is None or not before:
        return arrow
    return f"{arrow} ({(after - before) / before:+.0%})" if abs(after - before) > before * _SHARE_MIN else ""


def _number(value: CellValue | str) -> Decimal | None:
    """Return a number, also with a decimal comma, as an earlier run has written it; None for text."""
    try:
        return Decimal(str(value).replace(",", "."))
    except DecimalException:
        return None
