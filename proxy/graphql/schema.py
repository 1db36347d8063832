"""The complete supply schema, which documents of clients are validated against and introspection shows."""

from functools import lru_cache
from importlib import resources

import graphql

SITE_FIELD = "octopartUrl"  # of a part; named after the catalog site


@lru_cache(maxsize=4)
def load(site: str = "octopart") -> graphql.GraphQLSchema:
    """Return the schema of the service, whose parts link to a catalog site (`upstream.site`). Takes some 60 ms."""
    text = (resources.files(__package__) / "supply.graphql").read_text(encoding="utf-8")
    return graphql.build_schema(text.replace(f"{SITE_FIELD}:", f"{site}Url:"), assume_valid=True)
