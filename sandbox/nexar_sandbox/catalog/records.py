"""Records of the catalog: frozen values that the store builds and resolvers read; and its files, JSON Lines.

Names are the service's field names in snake case (contract graphql.md §1.2); ids are the service's numeric strings.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, TypeVar

import msgspec


class _FileRecord(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """A record that is a line, or in a line, of the catalog's files as it is."""


class Company(_FileRecord, frozen=True):
    """A maker, a seller, or both.

    `currency` and what follows apply to sellers only. `weight` (0..1) is how likely it lists a part; `regions` have
    variants of their own. `order_multiple`: its offers state one, all of them or none (contract graphql.md §2.6,
    recorded 2022).
    """

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    display_flag: str | None = None
    homepage_url: str | None = None
    slug: str = ""
    is_verified: bool = False
    is_broker: bool = False
    is_distributor_api: bool = False
    is_octocart_supported: bool = False
    roles: frozenset[Literal["manufacturer", "seller"]] = frozenset()
    currency: str = "USD"
    weight: float = 0.3
    authorized: bool = True
    regions: tuple[str, ...] = ()
    order_multiple: bool = False

    @property
    def is_authorized(self) -> bool:
        """True of a seller; brokers never are."""
        return self.authorized and not self.is_broker


class Category(_FileRecord, frozen=True):
    """A node of the category tree; `parent_id` of the root is the root's own id."""

    id: str
    parent_id: str
    name: str
    path: str


class CatalogAttribute(_FileRecord, frozen=True):
    """An attribute: a kind of technical property."""

    id: str
    name: str
    shortname: str
    group: str
    value_type: Literal["number", "text"]
    units_name: str = ""
    units_symbol: str = ""


@dataclass(frozen=True, slots=True)
class CatalogSpec:
    """The value of one attribute of one part. `si_value` is in SI base units; `units` is the symbol that
    `display_value` shows, with its prefix ("nF"), "" for text."""

    attribute: CatalogAttribute
    value: str
    si_value: str
    display_value: str
    units: str = ""


@dataclass(frozen=True, slots=True)
class CatalogDocument:
    name: str
    url: str
    mime_type: str
    page_count: int | None
    created_at: str | None
    credit_string: str
    credit_url: str


@dataclass(frozen=True, slots=True)
class DocumentCollection:
    """Documents of one kind: "Datasheets", "Compliance Documents"."""

    name: str
    documents: tuple[CatalogDocument, ...]


@dataclass(frozen=True, slots=True)
class Image:
    """An image in the service's five sizes."""

    url: str
    url_largest: str
    url55px: str
    url75px: str
    url90px: str
    credit_string: str
    credit_url: str


@dataclass(frozen=True, slots=True)
class Description:
    """A description of a part by one seller."""

    text: str
    credit_string: str
    credit_url: str


class ReferenceDesign(_FileRecord, frozen=True):
    """A maker's example circuit."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Cad:
    has3d_model: bool
    has_altium: bool
    has_eagle: bool
    has_orcad: bool
    has_kicad: bool
    download_url_altium: str
    download_url_eagle: str
    download_url_orcad: str
    download_url_kicad: str
    add_to_library_url: str | None
    footprint_image_url: str | None
    symbol_image_url: str | None


@dataclass(frozen=True, slots=True)
class Series:
    """A maker's product family."""

    id: str
    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Part:
    """A part of one maker. Its offers are not in the record: offers.py builds them from `id` and the seed."""

    id: str
    v3uid: str
    redirected_uids: tuple[str, ...]
    mpn: str
    generic_mpn: str
    manufacturer: Company
    category: Category | None
    short_description: str
    slug: str
    aka_mpns: tuple[str, ...]
    series: Series | None
    specs: tuple[CatalogSpec, ...]
    document_collections: tuple[DocumentCollection, ...]
    images: tuple[Image, ...]
    descriptions: tuple[Description, ...]
    reference_designs: tuple[ReferenceDesign, ...]
    cad: Cad | None
    manufacturer_url: str | None
    free_sample_url: str | None
    factory_lead_days: int | None
    similar_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PriceBreak:
    """A price from a quantity on, in the seller's currency; "" if the feed has none."""

    quantity: int
    price: float
    currency: str


@dataclass(frozen=True, slots=True)
class Offer:
    """One geo-targeted listing. `inventory_level` has the negative codes of contract graphql.md §2.6."""

    id: str
    sku: str
    eligible_region: str | None
    inventory_level: int
    packaging: str | None
    moq: int | None
    prices: tuple[PriceBreak, ...]
    updated: str
    factory_lead_days: int | None
    on_order_quantity: int | None
    factory_pack_quantity: int | None
    order_multiple: int | None
    multipack_quantity: int | None


@dataclass(frozen=True, slots=True)
class SellerOffers:
    company: Company
    country: str | None
    is_authorized: bool
    is_broker: bool
    is_rfq: bool
    ships_to: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class MatchQuery:
    """One entry of supMultiMatch (contract graphql.md §1.3); ranges are checked by the caller."""

    mpn: str | None = None
    sku: str | None = None
    mpn_or_sku: str | None = None
    manufacturer: str | None = None
    seller: str | None = None


@dataclass(frozen=True, slots=True)
class SearchConditions:
    """Conditions of a search: `filters` maps shortname or manufacturer_id, distributor_id, category_id,
    cad_models to accepted values (ids, names, or ranges such as "(8__16)")."""

    filters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    in_stock_only: bool = False
    authorized_only: bool = False


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A completion; without a category the last two fields are ""."""

    text: str
    in_category_name: str
    in_category_id: str


@dataclass(frozen=True, slots=True)
class SpellingCorrection:
    correction_string: str
    hits: int


@dataclass(frozen=True, slots=True)
class SpecCounts:
    """The counts of the values of one attribute among hits: (display value, number or None, count), most
    frequent first; `minimum` and `maximum` are in SI base units, None for text."""

    attribute: CatalogAttribute
    buckets: tuple[tuple[str, float | None, int], ...]
    minimum: float | None
    maximum: float | None


@dataclass(frozen=True, slots=True)
class SearchHits:
    """All hits, best first: `parts` are the numbers of their ids, `akas` the alternate MPNs of those that matched by
    one."""

    parts: Sequence[int]
    akas: Mapping[int, str] = field(default_factory=dict)

    @property
    def hits(self) -> int:
        return len(self.parts)

    @property
    def ids(self) -> tuple[str, ...]:
        return self.page(0, len(self.parts))

    def page(self, start: int, limit: int) -> tuple[str, ...]:
        return tuple(map(str, self.parts[start : start + limit]))

    def aka_of(self, id_: str) -> str | None:
        """The alternate MPN by which this part matched; None if it matched otherwise."""
        return self.akas.get(int(id_))


class CatalogError(ValueError):
    """A catalog file that cannot be used; the message names the file, the line and the fault."""


# "": made when the line is read.
_Id: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^([1-9][0-9]{0,8})?\Z")]
_Uid: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{16})?\Z")]


class PartLine(_FileRecord, kw_only=True, frozen=True):
    """A part. Numbers in `specs` are in SI base units (temperatures in °C); `sku` and `codes` are by seller id."""

    mpn: str
    manufacturer: str
    id: _Id = ""
    category: str = ""
    description: str = ""
    v3uid: _Uid = ""
    specs: dict[str, float | str] = {}
    aka: list[str] = []
    redirected: list[_Uid] = []
    series: str = ""
    datasheet: bool = True
    cad: bool | None = None
    images: bool = True
    factory_lead_days: int | None = None
    offers: Literal["", "none", "brokers", "nostock"] = ""
    sku: dict[str, str] = {}
    codes: dict[str, int] = {}
    documents: list[str] = []
    reference_designs: list[ReferenceDesign] = []
    free_sample: bool = False


L = TypeVar("L", bound=msgspec.Struct)


def read_lines(path: Path, kind: type[L]) -> Iterator[tuple[int, L]]:
    """The lines of `path` with their numbers from 1, without blank ones. Raises CatalogError for an invalid line."""
    decoder = msgspec.json.Decoder(kind)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise CatalogError(f"{path}: cannot be read: {error.strerror}") from error
    for number, text in enumerate(raw.splitlines(), start=1):
        if not text.strip():
            continue
        try:
            yield number, decoder.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CatalogError(f"{path}:{number}: {error}") from error
