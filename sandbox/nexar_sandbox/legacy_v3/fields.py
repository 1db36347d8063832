"""The classes of v3 with their fields, as the contract's tables have them (contract v3-rest.md §3.1-3.5).

A field's value is the class of its objects, "" for scalars. Used by show[], hide[], slice[] and to validate names.
"""

from collections.abc import Mapping

Path = tuple[str, ...]

# The field whose objects are in an object with keys that are data.
KEYED = "specs"
ANY = "*"

_ATTRIBUTED = {"attribution": "Attribution"}
_ASSET = dict.fromkeys(("url", "mimetype", "metadata"), "")
_DOCUMENT = {**_ASSET, "metadata": "DocumentMetadata"}
_COMPANY = dict.fromkeys(("uid", "name", "homepage_url"), "")
_PICTURES = dict.fromkeys(("swatch_image", "small_image", "medium_image", "large_image"), "Asset")

CLASSES: Mapping[str, Mapping[str, str]] = {
    "Part": {
        **dict.fromkeys(("uid", "mpn", "octopart_url", "redirected_uids", "short_description", "category_uids"), ""),
        "manufacturer": "Manufacturer",
        "brand": "Brand",
        "offers": "PartOffer",
        "external_links": "ExternalLinks",
        "broker_listings": "BrokerListing",
        "descriptions": "Description",
        "imagesets": "ImageSet",
        "datasheets": "Datasheet",
        "compliance_documents": "ComplianceDocument",
        "reference_designs": "ReferenceDesign",
        "cad_models": "CADModel",
        "specs": "SpecValue",
    },
    "Brand": _COMPANY,
    "Manufacturer": _COMPANY,
    "Seller": {**_COMPANY, **dict.fromkeys(("display_flag", "has_ecommerce", "id"), "")},
    "Category": {
        **dict.fromkeys(("uid", "name", "parent_uid", "children_uids", "ancestor_uids", "ancestor_names"), ""),
        "num_parts": "",
        "imagesets": "ImageSet",
    },
    "PartOffer": {
        **dict.fromkeys(("sku", "eligible_region", "product_url", "octopart_rfq_url", "prices", "packaging"), ""),
        **dict.fromkeys(("in_stock_quantity", "on_order_quantity", "on_order_eta", "factory_lead_days"), ""),
        **dict.fromkeys(("factory_order_multiple", "order_multiple", "moq", "is_authorized", "last_updated"), ""),
        **dict.fromkeys(("is_realtime", "multipack_quantity", "_naive_id", "_custom"), ""),
        "seller": "Seller",
    },
    "ExternalLinks": dict.fromkeys(("product_url", "freesample_url", "evalkit_url"), ""),
    "BrokerListing": {"seller": "Seller", "listing_url": "", "octopart_rfq_url": ""},
    "Description": {"value": "", **_ATTRIBUTED},
    "ImageSet": {**_PICTURES, **_ATTRIBUTED, "credit_string": "", "credit_url": ""},
    "Asset": _ASSET,
    "DocumentMetadata": dict.fromkeys(("size_bytes", "num_pages", "date_created", "last_updated"), ""),
    "Datasheet": {**_DOCUMENT, **_ATTRIBUTED},
    "ComplianceDocument": {**_DOCUMENT, **_ATTRIBUTED, "subtypes": ""},
    "ReferenceDesign": {**_ASSET, **_ATTRIBUTED, "title": "", "description": ""},
    "CADModel": {**_ASSET, **_ATTRIBUTED},
    "SpecValue": {
        **dict.fromkeys(("value", "min_value", "max_value", "display_value"), ""),
        "metadata": "SpecMetadata",
        **_ATTRIBUTED,
    },
    "SpecMetadata": {"key": "", "name": "", "datatype": "", "unit": "UnitOfMeasurement"},
    "UnitOfMeasurement": {"name": "", "symbol": ""},
    "Attribution": {"sources": "Source", "first_acquired": ""},
    "Source": {"uid": "", "name": ""},
}
# Fields that are only in the response if include[] names them (§2.3).
INCLUDED: Mapping[str, frozenset[str]] = {
    "Part": frozenset(
        {
            "external_links", "broker_listings", "short_description", "descriptions", "imagesets", "datasheets",
            "compliance_documents", "reference_designs", "cad_models", "specs", "category_uids",
        }
    ),
    "Category": frozenset({"imagesets"}),
}  # fmt: skip


def is_known(name: str, path: Path) -> bool:
    """Return true if objects of the class have a field at this path; below `specs` a path has a key, or `*`."""
    if not path or path[0] not in CLASSES.get(name, {}):
        return False
    below, remaining_path = CLASSES[name][path[0]], path[1:]
    if path[0] == KEYED and remaining_path:
        remaining_path = remaining_path[1:]
    return not remaining_path or is_known(below, remaining_path)
