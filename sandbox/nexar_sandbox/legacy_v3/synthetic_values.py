"""Synthetic values of v3 fields without a source in the catalog, derived from their subject, so always the same.

Comparisons have to report that the new service has no source for them.
"""

import hashlib
from datetime import UTC, datetime, timedelta

from nexar_sandbox.catalog import records

_SITE = "https://octopart.com"
_EPOCH = datetime(2021, 1, 1, tzinfo=UTC)
_DIGEST_RANGE = float(1 << 64)


def _fraction(*place: object) -> float:
    """Return a fraction in [0, 1), the same for the same arguments."""
    digest = hashlib.blake2b(":".join(map(str, place)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / _DIGEST_RANGE


def rfq_url(part_id: str, offer_id: str, is_offered: bool) -> str | None:
    return f"{_SITE}/rfq/generate?ppid={part_id}&vpid={offer_id}" if is_offered else None


def on_order_eta(offer: records.Offer) -> str | None:
    if offer.on_order_quantity is None:
        return None
    day = _EPOCH + timedelta(days=int(120 * _fraction("eta", offer.id)))
    return f"{day:%Y-%m-%dT00:00:00Z}"


def evalkit_url(part: records.Part) -> str | None:
    """Shop URL of an evaluation kit; a few parts had one."""
    has = _fraction("evalkit", part.id) < 0.3
    return f"{_SITE}/evalkit?ppid={part.id}" if has else None


def document_size(url: str) -> int:
    """Bytes of a document."""
    return 40_000 + int(2_000_000 * _fraction("size", url))


def document_seen(document: records.CatalogDocument) -> str | None:
    """Time at which a document was last fetched."""
    if document.created_at is None:
        return None
    later = timedelta(seconds=int(3_000_000 * _fraction("seen", document.url)))
    return f"{datetime.fromisoformat(document.created_at) + later:%Y-%m-%dT%H:%M:%SZ}"


def spec_credit(part: records.Part, seller_names: tuple[str, ...]) -> str:
    return seller_names[int(_fraction("credit", part.id) * len(seller_names))]
