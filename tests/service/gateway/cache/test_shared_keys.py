"""Tests of the keys of the shared cache: an application finds its own entries only."""

import json
from typing import Any

import prometheus_client
from hypothesis import given
from hypothesis import strategies as st
from service.gateway.cache.test_shared import CONTEXT, SETTINGS, DictionaryCache, application
from support import running_proxy

from proxy import config
from proxy.gateway.applications import Application
from proxy.gateway.cache import shared
from proxy.gateway.cache.entries import CacheKey
from proxy.gateway.cache.shared_keys import namespace
from proxy.telemetry import metrics


def opened(scope: bytes) -> shared.SharedCache:
    counts = metrics.Metrics(prometheus_client.CollectorRegistry())
    return shared.SharedCache(DictionaryCache(), SETTINGS, scope, claims=True, metrics=counts)


def test_upstreams_have_separate_entries() -> None:
    def scope(**changes: Any) -> bytes:
        upstream = config.UpstreamSettings(
            **{"graphql_url": "https://one/graphql", "token_url": "https://one", **changes}
        )
        return namespace(running_proxy.settings("https://one/graphql", "https://one"), upstream)

    others = [{}, {"graphql_url": "https://two/graphql"}, {"site": "altium"}, {"scope": "other.domain"}]
    assert len({scope(**each) for each in others}) == len(others)


APPLICATIONS = st.builds(
    application,
    name=st.sampled_from(["demo", "other"]),
    id_=st.sampled_from(["id", "id\0", "i"]),
    secret=st.sampled_from(["", "d", "secret"]),
    country=st.sampled_from(["US", "DE"]),
    plan=st.sets(st.sampled_from(["TECH_SPECS", "DATASHEETS"])),
)
QUERIES = st.lists(st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.text('ab"\\,', max_size=3)), max_size=4)


@given(pairs=st.lists(st.tuples(APPLICATIONS, QUERIES, st.sampled_from([b"one", b"two"])), min_size=2, max_size=2))
async def test_keys_are_equal_only_for_the_same_application_and_query(
    pairs: list[tuple[Application, list[Any], bytes]],
) -> None:
    identities, keys = [], []
    for app, parts, scope in pairs:
        cache = opened(scope)
        keys.append(cache.key(app, CacheKey(tuple(parts), CONTEXT)))
        secret = app.credentials.client_secret
        identities.append(
            (
                *(app.name, app.credentials.client_id, secret and secret.reveal()),
                *(app.context, app.features, json.dumps(parts), scope),
            )
        )
        await cache.close()
    assert (keys[0] == keys[1]) == (identities[0] == identities[1])


async def test_key_of_text_that_json_cannot_hold_is_none() -> None:
    cache = opened(b"scope")
    assert cache.key(application(), CacheKey(("\udc80",), CONTEXT)) is None
    await cache.close()
