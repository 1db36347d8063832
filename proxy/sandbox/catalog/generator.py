"""Generates parts by formula, to fill a catalog up to any size: the same parts for the same number.

Used by the loader. Families alternate, so that a small catalog is as mixed as a large one.
"""

import hashlib
from collections.abc import Collection, Iterator

from proxy.sandbox.catalog import families, large_families, records, reference_data, source_files

# Above the ids of real parts, below what a 32-bit integer holds.
FIRST_ID = 1_000_000_001


def parts(
    reference: reference_data.ReferenceData, taken: Collection[tuple[str, str]]
) -> Iterator[source_files.PartLine]:
    """Every part of every family, one of each family in turn; those whose (maker id, mpn) is in `taken` are left out.

    Makers and categories that are missing are created in `words` at once; a property that it does not know is
    dropped.
    """
    all_families = (*families.FAMILIES, *large_families.FAMILIES)
    made = _round_robin([_family(family, reference) for family in all_families])
    fresh = (one for one in made if (one[0], one[2].mpn) not in taken)
    return (_line(number, *one) for number, one in enumerate(fresh, start=FIRST_ID))


def _line(number: int, maker: str, category: str, draft: families.PartDraft) -> source_files.PartLine:
    return source_files.PartLine(
        id=str(number),
        mpn=draft.mpn,
        manufacturer=maker,
        category=category,
        description=draft.description,
        v3uid=v3uid(maker, draft.mpn),
        specs=draft.specs,
    )


def v3uid(maker_id: str, mpn: str) -> str:
    """A 16 digit hex uid for a part that has none of its own."""
    return hashlib.blake2b(f"{maker_id}|{mpn}".encode(), digest_size=8).hexdigest()


def _family(
    family: families.PartFamily, reference: reference_data.ReferenceData
) -> Iterator[tuple[str, str, families.PartDraft]]:
    """The parts of a family. Its maker and category exist in `reference` when this returns, before the first part."""
    maker, category = reference.maker(family.maker).id, reference.branch(*family.branch).id
    return ((maker, category, _fitting(draft, reference)) for draft in family.drafts())


def _fitting(draft: families.PartDraft, reference: reference_data.ReferenceData) -> families.PartDraft:
    specs = {name: value for name, value in draft.specs.items() if fits(reference.attributes.get(name), value)}
    return draft._replace(specs=specs)


def fits(attribute: records.CatalogAttribute | None, value: float | str) -> bool:
    """Whether the property exists and `value` is of its type."""
    return attribute is not None and isinstance(value, str) == (attribute.value_type == "text")


def _round_robin(
    sources: list[Iterator[tuple[str, str, families.PartDraft]]],
) -> Iterator[tuple[str, str, families.PartDraft]]:
    while sources:
        for source in tuple(sources):
            one = next(source, None)
            if one is None:
                sources.remove(source)
            else:
                yield one
