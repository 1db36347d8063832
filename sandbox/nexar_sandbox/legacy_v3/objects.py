"""v3 objects of one catalog: Parts with the fields of include[] (contract v3-rest.md §3.1, §3.5), and listings."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from nexar_sandbox.catalog import records, store
from nexar_sandbox.legacy_v3 import (
    catalog_objects,
    listing,
    part_search,
    projection,
    spec_names,
    synthetic_values,
)

Object = dict[str, Any]
_CAD_FORMATS = ("altium", "eagle", "orcad", "kicad")
_SUFFIXES = {"jpg": "image/jpg", "jpeg": "image/jpg", "png": "image/png", "gif": "image/gif"}


class PartObjects:
    def __init__(
        self,
        catalog: store.Catalog,
        company_objects: catalog_objects.CompanyObjects,
        market: catalog_objects.OfferObjects,
    ) -> None:
        self._catalog, self._company_objects, self._market = catalog, company_objects, market
        self._sellers = tuple(map(company_objects.seller_name, catalog.reference.sellers))
        self._fields: dict[str, Callable[[records.Part], Any]] = {
            "short_description": lambda part: part.short_description,
            "descriptions": self._descriptions,
            "imagesets": self._imagesets,
            "datasheets": lambda part: self._documents(part, "Datasheets", "Datasheet"),
            "compliance_documents": lambda part: self._documents(part, "Compliance Documents", "ComplianceDocument"),
            "reference_designs": self._designs,
            "cad_models": self._models,
            "specs": self._specs,
            "category_uids": lambda part: company_objects.category_line(part.category) if part.category else [],
            "external_links": _links,
        }

    def build(self, part: records.Part, field_projection: projection.LegacyProjection, apikey: str) -> Object:
        """Return the part after projection."""
        sellers = self._catalog.sellers_of(part)
        part_object: Object = {
            "offers": self._market.of(part.id, sellers, apikey),
            "mpn": part.mpn,
            "redirected_uids": list(part.redirected_uids),
            "__class__": "Part",
            "brand": self._company_objects.brand(part.manufacturer),
            "octopart_url": f"https://octopart.com{part.slug}",
            "uid": part.v3uid,
            "manufacturer": self._company_objects.manufacturer(part.manufacturer),
        }
        # Only what is included is built; hidden fields are removed afterwards.
        for name in field_projection.include & self._fields.keys():
            part_object[name] = self._fields[name](part)
        if "broker_listings" in field_projection.include:
            part_object["broker_listings"] = self._market.broker_listings(part.id, sellers, apikey)
        return field_projection.of(part_object)

    def _descriptions(self, part: records.Part) -> list[Object]:
        return [
            {
                "value": each.text,
                "__class__": "Description",
                "attribution": self._company_objects.credited(each.credit_string),
            }
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
                "attribution": self._company_objects.credited(each.credit_string),
                "credit_url": each.credit_url,
            }
            for each in part.images
        ]

    def _documents(self, part: records.Part, collection: str, name: str) -> list[Object]:
        documents = (
            each for group in part.document_collections if group.name == collection for each in group.documents
        )
        return [self._document(each, name) for each in documents]

    def _document(self, document: records.CatalogDocument, name: str) -> Object:
        subtypes = {"subtypes": [document.name.lower().replace(" ", "_")]} if name == "ComplianceDocument" else {}
        return {
            "mimetype": document.mime_type,
            "__class__": name,
            "url": document.url,
            **subtypes,
            "attribution": self._company_objects.credited(document.credit_string),
            "metadata": {
                "size_bytes": synthetic_values.document_size(document.url),
                "num_pages": document.page_count,
                "last_updated": synthetic_values.document_seen(document),
                "date_created": document.created_at,
            },
        }

    def _designs(self, part: records.Part) -> list[Object]:
        return [
            {
                "title": each.name,
                "mimetype": "text/html",
                "__class__": "ReferenceDesign",
                "description": f"Reference design: {each.name}",
                "url": each.url,
                "attribution": self._company_objects.credited(part.manufacturer.name),
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
                "attribution": self._company_objects.credited(""),
            }
            for url in ((getattr(part.cad, f"download_url_{name}") for name in _CAD_FORMATS) if part.cad else ())
        ]

    def _specs(self, part: records.Part) -> Object:
        credit = self._company_objects.credited(synthetic_values.spec_credit(part, self._sellers))
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
        "evalkit_url": synthetic_values.evalkit_url(part),
        "__class__": "ExternalLinks",
        "product_url": part.manufacturer_url,
        "freesample_url": part.free_sample_url,
    }


def _picture(url: str) -> Object | None:
    if not url:
        return None
    mimetype = _SUFFIXES.get(url.rpartition(".")[2].lower(), "image/jpg")
    return {"mimetype": mimetype, "metadata": {"width": None, "height": None}, "__class__": "Asset", "url": url}


class LegacyObjects:
    """All objects of one catalog; brands, sellers and categories are built at first use."""

    def __init__(self, catalog: store.Catalog) -> None:
        self._catalog = catalog
        self._companies = catalog_objects.CompanyObjects(catalog, catalog_objects.LegacyUids())
        self.spec_names = spec_names.SpecNames(catalog.reference.attributes.values())
        fields = part_search.PartFields(catalog, self._companies, self.spec_names)
        self.search = part_search.PartSearch(catalog, fields)
        self.parts = PartObjects(catalog, self._companies, catalog_objects.OfferObjects(self._companies))

    def by_uid(self, name: str, uid: str) -> Object | None:
        """Return the Brand, Category or Seller of a uid, including uids of earlier years."""
        return self.listings[name].get(self._companies.uids.current(uid))

    def project(self, object_: Object, name: str, field_projection: projection.LegacyProjection) -> Object:
        if name == "Category" and "imagesets" in field_projection.include:
            object_ = {**object_, "imagesets": []}
        return field_projection.of(object_)

    @cached_property
    def listings(self) -> dict[str, listing.LegacyListing]:
        company_objects, catalog = self._companies, self._catalog
        return {
            "Brand": listing.LegacyListing(
                (company_objects.brand(each), each.aliases, ()) for each in catalog.reference.manufacturers
            ),
            "Seller": listing.LegacyListing(
                (company_objects.seller(each), each.aliases, company_objects.other_names(each))
                for each in catalog.reference.sellers
            ),
            "Category": listing.LegacyListing(
                (company_objects.category(each), (), ()) for each in catalog.reference.categories.values()
            ),
        }
