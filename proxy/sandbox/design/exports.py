"""What can be downloaded of a project: a ZIP with its bill of materials as CSV and, for a whole package, its placement.

Pure, from records to bytes; used by the service of projects. There are no Gerber files: the boards of the sandbox have
no copper.
"""

import csv
import io
import zipfile
from collections.abc import Iterable, Mapping

from proxy.sandbox.design import records

# A ZIP says when its files were written; one that does not change is easier to compare.
WRITTEN = (1980, 1, 1, 0, 0, 0)


def package(
    project: records.Project,
    bom: records.Bom,
    components: Mapping[str, records.Component],
    items: Iterable[records.DesignItem],
) -> bytes:
    """The ZIP of a variant."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (
            (f"{project.name} {bom.variant_name} BOM.csv", _bom(bom, components)),
            (f"{project.name} placement.csv", _placement(items)),
        ):
            archive.writestr(zipfile.ZipInfo(name, WRITTEN), text)
    return written.getvalue()


def _bom(bom: records.Bom, components: Mapping[str, records.Component]) -> str:
    rows = []
    for item in bom.items:
        component = components[item.component_id]
        first = component.manufacturer_parts[0] if component.manufacturer_parts else None
        fitted = [one.designator for one in item.instances if one.is_fitted]
        maker, number = (first.company_name, first.part_number) if first else ("", "")
        rows.append((" ".join(fitted), len(fitted), component.name, component.description, maker, number))
    return _csv(("Designators", "Quantity", "Component", "Description", "Manufacturer", "Part number"), rows)


def _placement(items: Iterable[records.DesignItem]) -> str:
    rows = [(one.designator, one.comment, one.footprint_name, one.rotation) for one in items]
    return _csv(("Designator", "Comment", "Footprint", "Rotation"), rows)


def _csv(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()
