"""A part of the catalog as a v3 Part (contract v3-rest.md §3.1, §3.5), built whole for what include[] names."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

from proxy.sandbox.catalog import records, store
from proxy.sandbox.legacy_v3 import companies, disturbances, drawing, offers, only_v3, shape, spec_names

Object = dict[str, Any]
_SUFFIXES = {"jpg": "image/jpg", "jpeg": "image/jpg", "png": "image/png", "gif": "image/gif"}
_EMPTY: dict[type, Callable[[], object]] = {list: list, dict: dict}


class Parts:
    """Makes parts for callers."""

    def __init__(self, catalog: store.Catalog, known: companies.Companies, market: offers.Offers, country: str) -> None:
        self._catalog, self._known, self._market, self._country = catalog, known, market, country
        self._sellers = tuple(map(known.seller_name, catalog.sellers()))
        self._fields: dict[str, Callable[[records.Part], Any]] = {
            "short_description": lambda part: part.short_description,
            "descriptions": self._descriptions,
            "imagesets": self._imagesets,
            "datasheets": lambda part: self._documents(part, "Datasheets", "Datasheet"),
            "compliance_documents": lambda part: self._documents(part, "Compliance Documents", "ComplianceDocument"),
            "reference_designs": self._designs,
            "cad_models": self._models,
            "specs": self._specs,
            "category_uids": lambda part: known.category_line(part.category) if part.category else [],
            "external_links": _links,
        }

    def built(self, part: records.Part, seen: shape.Shape, apikey: str, draws: drawing.Draws) -> Object:
        """The part as a caller sees it. `part` may be one that the catalog does not have: then `id` names the part
        whose offers it shows."""
        sellers = self._catalog.sellers_of(part, self._country)
        whole: Object = {
            "offers": self._market.of(part.id, sellers, apikey, draws),
            "mpn": part.mpn,
            "redirected_uids": list(part.redirected_uids),
            "__class__": "Part",
            "brand": self._known.brand(part.manufacturer),
            "octopart_url": f"https://octopart.com{part.slug}",
            "uid": part.v3uid,
            "manufacturer": self._known.manufacturer(part.manufacturer),
        }
        for name in seen.include & self._fields.keys():
            whole[name] = self._fields[name](part)
        if "broker_listings" in seen.include:
            whole["broker_listings"] = self._market.broker_listings(part.id, sellers, apikey)
        return seen.of(_flapping(whole, part.id, draws))

    def _descriptions(self, part: records.Part) -> list[Object]:
        return [
            {"value": each.text, "__class__": "Description", "attribution": self._known.credited(each.credit_string)}
            for each in part.descriptions
        ]

    def _imagesets(self, part: records.Part) -> list[Object]:
        return [
            {
                "credit_string": each.credit_string,
                "swatch_image": _picture(each.url55px),
                "small_image": _picture(each.url75px),
                "__class__": "ImageSet",
                "medium_image": _picture(each.url90px),
                "large_image": _picture(each.url_largest),
                "attribution": self._known.credited(each.credit_string),
                "credit_url": each.credit_url,
            }
            for each in part.images
        ]

    def _documents(self, part: records.Part, collection: str, name: str) -> list[Object]:
        found = (each for group in part.document_collections if group.name == collection for each in group.documents)
        return [self._document(each, name) for each in found]

    def _document(self, document: records.CatalogDocument, name: str) -> Object:
        subtypes = {"subtypes": [document.name.lower().replace(" ", "_")]} if name == "ComplianceDocument" else {}
        return {
            "mimetype": document.mime_type,
            "__class__": name,
            "url": document.url,
            **subtypes,
            "attribution": self._known.credited(document.credit_string),
            "metadata": {
                "size_bytes": only_v3.document_size(document.url),
                "num_pages": document.page_count,
                "last_updated": only_v3.document_seen(document),
                "date_created": document.created_at,
            },
        }

    def _designs(self, part: records.Part) -> list[Object]:
        return [
            {
                "title": each.name,
                "mimetype": "text/html",
                "__class__": "ReferenceDesign",
                "description": only_v3.design_description(each),
                "url": each.url,
                "attribution": self._known.credited(part.manufacturer.name),
                "metadata": {},
            }
            for each in part.reference_designs
        ]

    def _models(self, part: records.Part) -> list[Object]:
        return [
            {
                "mimetype": "application/octet-stream",
                "__class__": "CADModel",
                "url": url,
                "metadata": {},
                "attribution": self._known.credited(""),
            }
            for url in (_downloads(part.cad) if part.cad else ())
        ]

    def _specs(self, part: records.Part) -> Object:
        credit = self._known.credited(only_v3.spec_credit(part, self._sellers))
        return {key: _spec(key, specs, credit) for key, specs in spec_names.of_part(part).items()}


def _spec(key: str, specs: list[records.CatalogSpec], credit: Object) -> Object:
    low, high = spec_names.limits(specs)
    return {
        "min_value": low,
        "value": [] if spec_names.is_end(specs[0].attribute) else spec_names.values(specs[0]),
        "__class__": "SpecValue",
        "metadata": spec_names.metadata(key, specs[0].attribute),
        "max_value": high,
        "attribution": credit,
        "display_value": spec_names.displayed(specs),
    }


def _links(part: records.Part) -> Object:
    return {
        "evalkit_url": only_v3.evalkit_url(part),
        "__class__": "ExternalLinks",
        "product_url": part.manufacturer_url,
        "freesample_url": part.free_sample_url,
    }


def _picture(url: str) -> Object | None:
    if not url:
        return None
    mimetype = _SUFFIXES.get(url.rpartition(".")[2].lower(), "image/jpg")
    return {"mimetype": mimetype, "metadata": {"width": None, "height": None}, "__class__": "Asset", "url": url}


def _downloads(cad: records.Cad) -> list[str]:
    formats = (
        (cad.has_altium, cad.download_url_altium),
        (cad.has_eagle, cad.download_url_eagle),
        (cad.has_orcad, cad.download_url_orcad),
        (cad.has_kicad, cad.download_url_kicad),
    )
    return [url for exists, url in formats if exists]


def _flapping(whole: Object, part_id: str, draws: drawing.Draws) -> Object:
    """The part with what flaps just now empty."""
    for each in draws.flapping:
        whole = _emptied(whole, each.field.split("."), partial(_strikes, draws, each, part_id, count()))
    return whole


def _strikes(draws: drawing.Draws, each: disturbances.Flapping, part_id: str, places: Iterator[int]) -> bool:
    return draws.flaps(each, (part_id, next(places)))


def _emptied(value: Any, path: list[str], strikes: Callable[[], bool]) -> Any:
    if isinstance(value, list):
        return [_emptied(each, path, strikes) for each in value]
    if not isinstance(value, dict) or path[0] not in value:
        return value
    name, *below = path
    if below:
        return {**value, name: _emptied(value[name], below, strikes)}
    return {**value, name: _EMPTY.get(type(value[name]), lambda: None)()} if strikes() else value
