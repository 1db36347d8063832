"""Parts as records, built from their lines on demand.

The store keeps only lines. Values that a line omits (document pages, CAD models, sellers' descriptions) are drawn from
the part's id, so that they are the same on every run.
"""

import base64
import hashlib
from collections.abc import Sequence
from urllib.parse import quote

from nexar_sandbox.catalog import records, reference_data, units

_SITE = "https://octopart.com"
NO_CAD, SYMBOL_FOOTPRINT, SYMBOL_FOOTPRINT_3D = 0, 1, 2


def build(line: records.PartLine, reference: reference_data.ReferenceData, similar: tuple[str, ...]) -> records.Part:
    """The record of a validated line: every id in it is in `reference`."""
    maker = reference.companies[line.manufacturer]
    draw = _draw(line)
    slug = f"/{_path(line.mpn)}-{_path(maker.name)}-{line.id}"
    return records.Part(
        id=line.id,
        v3uid=line.v3uid,
        redirected_uids=tuple(line.redirected),
        mpn=line.mpn,
        generic_mpn=_generic(line),
        manufacturer=maker,
        category=reference.categories.get(line.category),
        short_description=line.description,
        slug=slug,
        aka_mpns=tuple(line.aka),
        series=_series(line, maker),
        specs=tuple(spec(reference.attributes[name], value, draw) for name, value in line.specs.items()),
        document_collections=_documents(line, maker, draw),
        images=(_image(line, maker),) if line.images else (),
        descriptions=_descriptions(line, maker, reference.sellers, draw),
        reference_designs=tuple(line.reference_designs),
        cad=_cad(cad_level(line), slug, line.id),
        manufacturer_url=f"{_SITE}/opatz8j6/b1?t={_token(draw)}" if draw[0] < 200 else None,
        free_sample_url=f"{_SITE}/opatz8j6/s1?t={_token(draw)}" if line.free_sample else None,
        factory_lead_days=line.factory_lead_days,
        similar_ids=similar,
    )


def cad_level(line: records.PartLine) -> int:
    """NO_CAD, SYMBOL_FOOTPRINT or SYMBOL_FOOTPRINT_3D; drawn from the id if the line has none."""
    if line.cad is not None:
        return SYMBOL_FOOTPRINT_3D if line.cad else NO_CAD
    return (NO_CAD, NO_CAD, SYMBOL_FOOTPRINT, SYMBOL_FOOTPRINT_3D, SYMBOL_FOOTPRINT_3D)[int(line.id) % 5]


def spec(attribute: records.CatalogAttribute, value: float | str, draw: bytes) -> records.CatalogSpec:
    """One spec as displayed. The lifecycle status has its age in `display_value` only (contract graphql.md §2.6)."""
    if not isinstance(value, str):
        displayed = units.displayed(value, attribute.units_symbol)
        return records.CatalogSpec(attribute, displayed.value, units.plain(value), displayed.display, displayed.units)
    if attribute.shortname == "lifecyclestatus":
        months = 1 + draw[1] % 23
        age = f"{months} month{'s' if months > 1 else ''} ago"
        return records.CatalogSpec(attribute, value, value, f"{value} (Last Updated: {age})")
    return records.CatalogSpec(attribute, value, value, value)


def _draw(line: records.PartLine) -> bytes:
    # Each byte decides one question: `< 200` is true of 200 in 256 parts.
    return hashlib.blake2b(f"{line.id}:{line.mpn}".encode(), digest_size=24).digest()


def _token(draw: bytes) -> str:
    return base64.urlsafe_b64encode(draw).decode()


def _path(text: str) -> str:
    return quote(text.lower().replace("/", "-"), safe=" ").replace(" ", "+")


def _generic(line: records.PartLine) -> str:
    stem = line.mpn.partition("-")[0]
    return line.series or (stem if len(stem) >= 4 else line.mpn)


def _series(line: records.PartLine, maker: records.Company) -> records.Series | None:
    if not line.series:
        return None
    key = hashlib.blake2b(f"{maker.id}:{line.series}".encode(), digest_size=3).digest()
    return records.Series(str(int.from_bytes(key)), line.series, f"{_SITE}/series/{_path(line.series)}")


def _documents(line: records.PartLine, maker: records.Company, draw: bytes) -> tuple[records.DocumentCollection, ...]:
    documents = []
    if line.datasheet:
        sheet = _document("Datasheet", "datasheet", line, maker, draw)
        documents.append(records.DocumentCollection("Datasheets", (sheet,)))
    if line.documents:
        papers = tuple(_document(name, name.lower(), line, maker, draw) for name in line.documents)
        documents.append(records.DocumentCollection("Compliance Documents", papers))
    return tuple(documents)


def _document(
    name: str, kind: str, line: records.PartLine, maker: records.Company, draw: bytes
) -> records.CatalogDocument:
    file = quote(f"{line.mpn}-{maker.name}-{kind}-{line.id}".replace("/", "-").replace(" ", "-"))
    has_date = draw[2] < 210
    return records.CatalogDocument(
        name=name,
        url=f"http://datasheet.octopart.com/{file}.pdf",
        mime_type="application/pdf",
        page_count=1 + draw[3] % 60 if has_date else None,
        created_at=f"20{8 + draw[4] % 17:02}-{1 + draw[5] % 12:02}-{1 + draw[6] % 28:02}T00:00:00Z"
        if has_date
        else None,
        credit_string=maker.name if draw[7] < 200 else "",
        credit_url=(maker.homepage_url or "") if draw[7] < 200 else "",
    )


def _image(line: records.PartLine, maker: records.Company) -> records.Image:
    file = quote(f"{maker.name}-{line.mpn}.jpg".replace("/", "-").replace(" ", "-"))
    sizes = {name: f"https://sigma.octopart.com/{line.id}/{name}/{file}" for name in ("image", "55", "75", "90")}
    return records.Image(
        url=sizes["image"],
        url_largest=sizes["image"],
        url55px=sizes["55"],
        url75px=sizes["75"],
        url90px=sizes["90"],
        credit_string=maker.name,
        credit_url=maker.homepage_url or "",
    )


def _descriptions(
    line: records.PartLine, maker: records.Company, sellers: Sequence[records.Company], draw: bytes
) -> tuple[records.Description, ...]:
    """Descriptions by two to six sellers, as recordings have them; none for a part without a description."""
    if not line.description or not sellers:
        return ()
    wordings = (
        line.description,
        f"{line.mpn} {line.description}",
        line.description.upper(),
        f"{maker.name} {line.mpn}",
        f"{line.description} - {maker.name}",
        f"{maker.name} {line.mpn} {line.description}",
    )
    credited = dict.fromkeys(sellers[byte % len(sellers)] for byte in draw[8 : 10 + draw[11] % 5])
    return tuple(
        records.Description(text, company.name, company.homepage_url or "")
        for text, company in zip(wordings, credited, strict=False)
    )


def _cad(level: int, slug: str, part_id: str) -> records.Cad | None:
    if level == NO_CAD:
        return None
    page, files = f"{_SITE}/cad{slug}", f"https://sigma.octopart.com/{part_id}/cad"
    return records.Cad(
        has3d_model=level == SYMBOL_FOOTPRINT_3D,
        has_altium=True,
        has_eagle=True,
        has_orcad=True,
        has_kicad=True,
        download_url_altium=f"{page}/altium",
        download_url_eagle=f"{page}/eagle",
        download_url_orcad=f"{page}/orcad",
        download_url_kicad=f"{page}/kicad",
        add_to_library_url=f"{page}/add",
        footprint_image_url=f"{files}/footprint.png",
        symbol_image_url=f"{files}/symbol.png",
    )
