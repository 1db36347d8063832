"""Parameters of each endpoint, except those of searches (search.py): queries of parts/match, and uids."""

from typing import Any

from proxy import errors, model
from proxy.v3 import bounds
from proxy.v3.parameters import Parameters
from proxy.v3.parsing import match_queries


def parse_match(parameters: Parameters) -> tuple[list[Any], model.PartsMatchRequest]:
    """Parse parts/match; return its queries as they were sent, too, which the response repeats. Raises BadRequest if
    `queries` or `exact_only` is invalid as a whole."""
    raws = match_queries.decode(parameters.text("queries"))
    queries = tuple(map(match_queries.parse, raws))
    return raws, model.PartsMatchRequest(queries, parameters.flag("exact_only"))


def parse_uids(parameters: Parameters) -> list[str]:
    """Parse the uids of get_multi: `uid[]`, and `uids[]`, which one client sends. Raises BadRequest without any, and
    for too many."""
    uids = [uid for name in ("uid", "uids") for uid in parameters.texts(name) if uid]
    if not uids:
        raise errors.BadRequest("uid[] argument missing; send one for each object, like uid[]=2c3be9310496fffc")
    bounds.UIDS.check(len(set(uids)))
    return uids
