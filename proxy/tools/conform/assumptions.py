"""Assumptions and probe requests, read from the YAML files beside this module.

A probe request is sent at most once in a run; any number of assumptions observe its response.
"""

from typing import Any, Literal

import msgspec

Evidence = Literal["SDL", "DOC", "REC", "CLI", "SRC", "INF", "OWN"]  # marks of the contract; OWN: no public source
Kind = Literal["graphql", "token", "http"]
Tier = Literal["core", "complete", "strict"]


class ProbeRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One HTTP request. `parts` is the most that it can cost.

    `graphql` posts `document` and `variables` with the application's token; `token` posts the fields of `form` to the
    token endpoint; `http` sends `method` and `body` to `url`, both as given. In texts `{client_id}`, `{client_secret}`,
    `{basic_credentials}` (both of them, encoded for a Basic header), `{token}`, `{earlier_token}`,
    `{graphql_url}`, `{token_url}` and `{identity_url}` are replaced. `headers` replace those that would be sent; null
    omits one. With `renews_token` the token of the response becomes `{token}`, and the one before it
    `{earlier_token}`. `needs` names a condition that not every account meets, such as an application without parts,
    and `features` are the plan features that the selection needs: where one is not met, the assumptions that observe
    the request are not tested. `subjects` are numbers of the parts that it is about: where the service lacks one of
    them, they are not tested either.
    """

    kind: Kind = "graphql"
    document: str = ""
    variables: dict[str, Any] | None = None
    form: dict[str, str] = {}
    method: str = "POST"
    url: str = ""
    body: str | None = None
    headers: dict[str, str | None] = {}
    parts: int = 0
    needs: str | None = None
    features: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    renews_token: bool = False


class Assumption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One assumption.

    `observe` is a JMESPath expression over an object with a key for each of `requests`, whose values have `status`,
    `headers` (names in lower case), `body` (decoded JSON, or text) and `text` (as received); what it yields is the
    observed value. The assumption holds if that equals `expected`, or is a text that `pattern` matches whole.
    `used_by` says what depends on it.
    """

    id: str
    statement: str
    source: str
    evidence: Evidence
    tier: Tier
    requests: tuple[str, ...]
    observe: str
    expected: Any = msgspec.UNSET
    pattern: str | None = None
    used_by: str = ""


class AssumptionFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One YAML file: probe requests by name, in the order in which they are sent, and assumptions."""

    requests: dict[str, ProbeRequest]
    assumptions: tuple[Assumption, ...]


CONDITIONS = {
    "no_parts": "an application without parts (`parts: 0`)",
    "feature_missing": "an application whose plan lacks TECH_SPECS (`features`)",
}
"""What a request may need beside the application under test: `needs` by name, in words for people."""
