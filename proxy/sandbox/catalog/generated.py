"""Parts by formula, to fill a catalog up to any wanted size: the same parts for the same number.

Used by the loader. Families take turns, so that a small catalog is as mixed as a large one.
"""

import hashlib
from collections.abc import Collection, Iterator

from proxy.sandbox.catalog import families, large_families, lines, records, vocabulary

# Above the ids of real parts, below what a 32-bit integer holds.
FIRST_ID = 1_000_000_001


def parts(words: vocabulary.Vocabulary, taken: Collection[tuple[str, str]]) -> Iterator[lines.PartLine]:
    """Every part of every family, in turns; those whose (maker id, mpn) is in `taken` are left out.

    Makers and categories that are missing are created in `words` at once; a property that it does not know is
    dropped.
    """
    every = (*families.FAMILIES, *large_families.FAMILIES)
    made = _in_turns([_family(family, words) for family in every])
    fresh = (one for one in made if (one[0], one[2].mpn) not in taken)
    return (_line(number, *one) for number, one in enumerate(fresh, start=FIRST_ID))


def _line(number: int, maker: str, category: str, draft: families.Draft) -> lines.PartLine:
    return lines.PartLine(
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


def _family(family: families.Family, words: vocabulary.Vocabulary) -> Iterator[tuple[str, str, families.Draft]]:
    """The parts of a family. Its maker and its category are there when this returns."""
    maker, category = words.maker(family.maker).id, words.branch(*family.branch).id
    return ((maker, category, _fitting(draft, words)) for draft in family.drafts())


def _fitting(draft: families.Draft, words: vocabulary.Vocabulary) -> families.Draft:
    specs = {name: value for name, value in draft.specs.items() if fits(words.attributes.get(name), value)}
    return draft._replace(specs=specs)


def fits(attribute: records.Attribute | None, value: float | str) -> bool:
    """Whether the property exists and `value` is of its type."""
    return attribute is not None and isinstance(value, str) == (attribute.value_type == "text")


def _in_turns(
    sources: list[Iterator[tuple[str, str, families.Draft]]],
) -> Iterator[tuple[str, str, families.Draft]]:
    while sources:
        for source in tuple(sources):
            one = next(source, None)
            if one is None:
                sources.remove(source)
            else:
                yield one
