"""Keys of the shared cache: what an entry depends on, as a digest."""

import hashlib
from collections.abc import Hashable
from typing import Any

import msgspec

from proxy import __version__, config
from proxy.gateway.applications import Application
from proxy.gateway.cache.cached_records import FORMAT
from proxy.gateway.cache.entries import shared_name


def namespace(settings: config.Config, upstream: config.UpstreamSettings, *files: str | None) -> bytes:
    """Return a digest of what determines records beside the query: this version, the upstream, and the mapping files,
    by their digests. Programs that differ in one of them share no entries."""
    parts = [
        __version__,
        FORMAT,
        upstream.graphql_url,
        upstream.site,
        upstream.scope,
        settings.translation.single_query,
    ]
    return hashlib.blake2b(msgspec.json.encode([parts, files])).digest()


class SharedKeys:
    """Makes the keys of one namespace. The digest of each application is begun once."""

    def __init__(self, scope: bytes) -> None:
        self._scope = scope
        self._digests: dict[str, tuple[Application, Any]] = {}

    def key(self, application: Application, query: Hashable) -> bytes | None:
        """Return the key of a query: a digest, keyed by the application's secret, so that neither applications nor
        readers of the store can tell what was asked. None for text that JSON cannot hold."""
        begun = self._digests.get(application.name)
        # By identity: after a reload the same name may stand for other credentials.
        if begun is None or begun[0] is not application:
            begun = self._digests[application.name] = application, _application_digest(self._scope, application)
        try:
            text = msgspec.json.encode(shared_name(query))
        except UnicodeEncodeError:
            return None
        digest = begun[1].copy()
        digest.update(text)
        return bytes(digest.digest())


def _application_digest(scope: bytes, application: Application) -> Any:
    """Return the beginning of the keys of an application: of its name, its credentials, its plan, and where it buys."""
    credentials, context = application.credentials, application.context
    secret = credentials.client_secret.reveal() if credentials.client_secret else ""
    secret_key = hashlib.blake2b(f"{credentials.client_id}\0{secret}".encode()).digest()
    digest = hashlib.blake2b(scope, digest_size=16, key=secret_key)
    plan = sorted(application.features)  # a search says more with one that includes specs
    digest.update(msgspec.json.encode([application.name, context.country, context.currency, plan]))
    return digest
