"""Internal fields of the service for its own products: Ciiva ids, extras, Altium ids, CircuitMaker figures (contract
graphql.md §1.1).

The contract has the fields but no data. Ids and figures are derived from the part's id; extras are catalog data, which
need the same plan features as elsewhere. None of it is billed.
"""

import hashlib
import uuid
from typing import Any, NamedTuple

from graphql import GraphQLFieldResolver

from nexar_sandbox.catalog import matching, records
from nexar_sandbox.graphql import context, views
from nexar_sandbox.graphql.resolvers import parts

# Part ids and Ciiva ids are each other's figures under this mask. Part ids have nine digits at most.
_MASK = 0b10_1100_0011_1010_0101_0110_1001_0011
_LIFE_CYCLES = {
    "New": "NEW",
    "Production": "ACTIVE",
    "NRND": "NRFND",
    "EOL": "EOL",
    "Obsolete": "DISCONTINUED",
}
_ROHS = {"Compliant": True, "Non-Compliant": False}
# Confidence that a part is an alternative: the part itself, one with the same MPN, any other.
_SELF, _SAME_NUMBER, _OTHER = 1.0, 0.9, 0.5
_FIGURES = ("comments", "fabrications", "projects", "rates", "releases")


class SupPartExtras(NamedTuple):
    record: records.Part
    confidence: float = _SELF


def _masked(id_: str, to_part: bool, info: context.Info) -> str | None:
    """Return the part id of a Ciiva id, or the Ciiva id of a part; None if there is no such part."""
    if not (id_.isascii() and id_.isdecimal() and len(id_) <= 10):
        return None
    masked = str(int(id_) ^ _MASK)
    return None if info.context.catalog.part(masked if to_part else id_) is None else masked


def extras(_root: None, info: context.Info, partId: str) -> SupPartExtras | None:  # noqa: N803
    record = info.context.catalog.part(partId)
    return None if record is None else SupPartExtras(record)


def many_extras(_root: None, info: context.Info, partIds: list[str]) -> list[SupPartExtras | dict[str, str]]:  # noqa: N803
    """SupPartExtras of parts, an error as value where there is none."""
    return [extras(None, info, part_id) or {"message": f"there is no part {part_id}"} for part_id in partIds]


def payload_type(value: object, _info: context.Info, _kind: object) -> str:
    return "SupPartExtras" if isinstance(value, SupPartExtras) else "SupErrorPayload"


def alternatives(extras: SupPartExtras, info: context.Info, first: int) -> list[SupPartExtras]:
    """Similar parts, `first` of them; none for a negative number."""
    number = matching.normalize(extras.record.mpn)
    similar = (info.context.catalog.part(similar_id) for similar_id in extras.record.similar_ids[: max(first, 0)])
    return [
        SupPartExtras(part, _SAME_NUMBER if matching.normalize(part.mpn) == number else _OTHER)
        for part in similar
        if part is not None
    ]


def datasheet_urls(extras: SupPartExtras, _info: context.Info) -> list[str]:
    sheets = (collection for collection in extras.record.document_collections if collection.name == parts.DATASHEETS)
    return [document.url for collection in sheets for document in collection.documents]


def life_cycle(extras: SupPartExtras, info: context.Info) -> str:
    """UNKNOWN if the catalog has no value or the plan lacks the feature."""
    if not parts.may_see(parts.LIFE_CYCLE, info):
        return "UNKNOWN"
    return _LIFE_CYCLES.get(_value(extras.record, parts.LIFE_CYCLE), "UNKNOWN")


def parameters(extras: SupPartExtras, info: context.Info) -> list[dict[str, Any]]:
    return [
        {
            "name": spec.attribute.name,
            "unit": spec.units or None,
            "value": [text.strip() for text in spec.value.split(",")],
        }
        for spec in parts.specs(views.PartView(extras.record, views.Market("US", "USD")), info)
    ]


def technical_details(extras: SupPartExtras, info: context.Info) -> list[dict[str, Any]]:
    specs = parts.specs(views.PartView(extras.record, views.Market("US", "USD")), info)
    return [{"name": spec.attribute.name, "value": spec.display_value} for spec in specs]


def circuit_maker(part: views.PartView, _info: context.Info) -> dict[str, int] | None:
    """Usage figures; null for half of the parts."""
    use, *figures = _drawn(part, 6)
    return dict(zip(_FIGURES, figures, strict=True)) if use % 2 else None


def _drawn(part: views.PartView, size: int) -> bytes:
    return hashlib.blake2b(f"internal:{part.record.id}".encode(), digest_size=size).digest()


def _value(part: records.Part, shortname: str) -> str:
    return next((spec.value for spec in part.specs if spec.attribute.shortname == shortname), "")


ATTRIBUTES = {"SupPartExtras.partId": "record.id", "SupPartExtras.description": "record.short_description"}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    # A part has the same Ciiva id in every workspace.
    "Query.supOctopartIdFromCiivaId": lambda _, info, **given: _masked(given["ciivaId"], True, info),
    "Query.supPartIdFromCiivaId": lambda _, info, **given: _masked(given["ciivaId"], True, info),
    "Query.supPartIdsFromCiivaIds": lambda _, info, **given: [_masked(id_, True, info) for id_ in given["ciivaIds"]],
    "Query.supCiivaIdFromPartId": lambda _, info, **given: _masked(given["partId"], False, info),
    "Query.supCiivaIdsFromPartIds": lambda _, info, **given: [_masked(id_, False, info) for id_ in given["partIds"]],
    "Query.supPartExtrasByPartId": extras,
    "Query.supPartExtrasByPartIds": many_extras,
    "SupPart.altiumInternalId": lambda part, _: str(uuid.UUID(bytes=_drawn(part, 16))),
    "SupPart.circuitMakerInternal": circuit_maker,
    "SupPart.extras": lambda part, _: SupPartExtras(part.record),
    "SupPartExtras.alternatives": alternatives,
    "SupPartExtras.isRohsCompliant": lambda extras, _: _ROHS.get(_value(extras.record, "rohs")),
    "SupPartExtras.datasheetUrls": datasheet_urls,
    "SupPartExtras.lifeCycle": life_cycle,
    "SupPartExtras.parameters": parameters,
    "SupPartExtras.technicalDetails": technical_details,
}
