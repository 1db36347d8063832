"""Explanation of a v3 request as values: `--json` prints them as they are, terminal text is made of them in cli.

Values of one request, except in RequestKind. No value holds an API key or a client secret.
"""

import json
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from proxy.mapping.coverage import Kind
from proxy.v3.endpoints import Action


class _Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """Base class: `--json` shows every field, also those at their default."""


class ParameterValue(_Value, frozen=True, kw_only=True):
    """One parameter as the proxy understands it. `is_default`: the request does not have it."""

    name: str
    value: Any
    is_default: bool
    meaning: str = ""


class IgnoredParameter(_Value, frozen=True, kw_only=True):
    """Parameter, query key, or value without effect, and the reason."""

    name: str
    reason: str


class UnderstoodQuery(_Value, frozen=True, kw_only=True):
    """One query of parts/match with defaults, or its error: such a query is never sent upstream. `given` are the keys
    that the request has."""

    position: int
    keys: dict[str, Any]
    given: tuple[str, ...]
    error: str | None = None


class UnderstoodClient(_Value, frozen=True, kw_only=True):
    """Application that the request is executed with: where it buys, and the features of its plan. `chosen_by` says why
    it is this one; `problem` is the error of the proxy for the request's API key."""

    application: str
    api_key: str
    country: str
    currency: str
    features: tuple[str, ...]
    chosen_by: str
    problem: str | None = None


class ExplainedError(_Value, frozen=True, kw_only=True):
    """Error response that the request gets, before anything is sent upstream."""

    status: int
    v3_class: str
    message: str


class ExplainedOperation(_Value, frozen=True, kw_only=True):
    """GraphQL operation that the proxy sends. `document` is pretty-printed; what is sent differs in blanks only.

    `queries` are the positions of the v3 queries (or uids) that it resolves. `records` is the path of the records in
    the response data that the v3 objects are mapped from, such as `supMultiMatch[].parts[]`; empty if it returns none.
    `condition` says when it is sent; None: always, unless the results are stored.
    """

    name: str
    document: str
    variables: dict[str, Any]
    parts_max: int
    queries: tuple[int, ...]
    records: str
    condition: str | None = None


class Cost(_Value, frozen=True, kw_only=True):
    """Cost if nothing is stored. `requests` are GraphQL requests that are always sent, `requests_max` with those on
    condition."""

    parts_max: int
    requests: int
    requests_max: int
    note: str


class StoredQuery(_Value, frozen=True, kw_only=True):
    """Key of what is stored for some queries of a request: what must be equal for a hit."""

    queries: tuple[int, ...]
    key: str


class StoredResults(_Value, frozen=True, kw_only=True):
    """What serves the request without the upstream, if it is stored for `application`.

    `seconds` is how long a result is fresh, `stale_seconds` how much longer it may be served while the upstream fails.
    """

    application: str
    queries: tuple[StoredQuery, ...]
    seconds: float
    stale_seconds: float
    notes: tuple[str, ...]


class ExplainedField(_Value, frozen=True, kw_only=True):
    """One field of the v3 response, by its path from the object (or, in an envelope, from the response).

    `upstream` are paths from the upstream record; `$name` is a value of the request. `blank` is the value that a
    client sees where `kind` is "no source" or "no feature", or where the upstream has null. `object` is the name of the
    v3 object that the field holds.
    """

    path: str
    kind: Kind | Literal["no feature", "emptied"]
    upstream: tuple[str, ...] = ()
    transform: str | None = None
    feature: str | None = None
    note: str = ""
    blank: Any = None
    object: str | None = None

    @property
    def how(self) -> str:
        """How the field comes from its source, or why it has none, in words."""
        feature = f"plan feature {self.feature}" if self.feature and self.kind != "no feature" else None
        transform = f"{self.transform}()" if self.transform else None
        kind = None if self.kind == "exact" else self.kind
        blank = f"a client sees {json.dumps(self.blank)}" if self.kind in ("no feature", "emptied") else None
        return "; ".join(filter(None, (kind, transform, self.note, feature, blank)))


class Explanation(_Value, frozen=True, kw_only=True):
    """Explanation of one request. With an `error`, everything behind it is empty.

    `lists` are the upstream lists that the plan needs and that are not at hand: their operations come first in
    `operations`, and `<id of NAME>` in the variables of others stands for ids that they have. `items` is the path
    of the objects in the response.
    """

    request: str
    method: str
    endpoint: str
    action: Action | None
    object: str
    client: UnderstoodClient | None
    error: ExplainedError | None = None
    parameters: tuple[ParameterValue, ...] = ()
    queries: tuple[UnderstoodQuery, ...] = ()
    ignored: tuple[IgnoredParameter, ...] = ()
    operations: tuple[ExplainedOperation, ...] = ()
    lists: tuple[str, ...] = ()
    cost: Cost | None = None
    stored: StoredResults | None = None
    items: str = ""
    envelope: tuple[ExplainedField, ...] = ()
    fields: tuple[ExplainedField, ...] = ()

    @property
    def records(self) -> str:
        """Paths of the records that the objects are mapped from."""
        return " or ".join(dict.fromkeys(each.records for each in self.operations if each.records))


class RequestKind(_Value, frozen=True, kw_only=True):
    """Kind of requests in a file: endpoint, names of parameters, keys of queries and include[] are equal, other values
    are not. `has_batches`: with several queries, which are sent upstream differently from a single one.

    `requests` are the distinct ones, `occurrences` all, repetitions included; `parts_max` is the sum over the distinct
    ones. `example` explains the first of them, which is at `first` in the file.
    """

    endpoint: str
    parameters: tuple[str, ...]
    query_keys: tuple[str, ...]
    include: tuple[str, ...]
    has_batches: bool
    requests: int
    occurrences: int
    parts_max: int
    first: str
    example: Explanation


class ExplainedFile(_Value, frozen=True, kw_only=True):
    """Explanation of a file of requests: its kinds, the most frequent first. `skipped` says what of it was not read,
    with the number of times."""

    name: str
    requests: int
    occurrences: int
    parts_max: int
    kinds: tuple[RequestKind, ...]
    skipped: dict[str, int] = {}


VALUE_MAX = 200  # characters of a value in a table; documents and variables are shown whole


def shown_value(value: Any) -> str:
    """Return a value as JSON, texts and lists of them without quotes, at most VALUE_MAX characters."""
    texts = [value] if isinstance(value, str) else value
    is_text = isinstance(texts, list | tuple) and all(isinstance(each, str) for each in texts)
    text = ", ".join(texts) if is_text else msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_MAX else f"{text[: VALUE_MAX - 1]}…"


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers in ascending order, those in a row as `0-19`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
