"""Random v3 requests of every endpoint, from the description of their parameters, so that a new one is generated, too.

Most are for objects that exist, and are valid; some have a mistake. The same contents and seed make the same requests.
"""

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from proxy import model
from proxy.mapping.loader import Mappings
from proxy.tools.compare.generating.contents import CatalogContents
from proxy.tools.compare.judging import v3_fields
from proxy.traffic.v3_request import V3Request
from proxy.v3 import endpoints, parameters
from proxy.v3.description import field_names
from proxy.v3.endpoints import Endpoint
from proxy.v3.parsing import match_queries, v3_parameters
from proxy.v3.parsing.v3_parameters import FIELD, Parameter

Pairs = tuple[tuple[str, str], ...]

WEIGHTS = {"match": 30, "search": 12, "get_multi": 4, "get": 4}  # of endpoints, by action; twice as much for parts
MISTAKES = 0.03  # share of requests with one
INCLUDING = 0.4  # share of requests that include fields, most of which v3 shows only then
UNLIKELY = ("", "-1", "1e9", "true", "[", "{}", "*", "ü", "a" * 300)  # values of mistakes
CONDITIONS = ("[1 TO *]", "0", "[* TO 10]", "*")  # for fields without a value in any object
LENGTHS = (0, 1, 1, 2, 3, 5, 10, 20)  # of pages, and numbers of results left out
FILTER = next(each for each in v3_parameters.SEARCH if each.head == "filter[fields]")
ATTEMPTS = 50  # for each request, to make one that is new


class RequestGenerator:
    """Generates requests of one client."""

    def __init__(self, contents: CatalogContents, mappings: Mappings, site: str, client: str, seed: int) -> None:
        self._contents = contents
        self._mappings = mappings
        self._fields = v3_fields.load(site)
        self._client = client
        self._former: dict[str, list[str]] = {
            name: [uid for shown in objects for uid in shown.get("redirected_uids") or ()]
            for name, objects in contents.items()
        }
        self._rng = random.Random(seed)  # noqa: S311 - reproducible by --seed

    def requests(self, number: int) -> list[V3Request]:
        """Generate a number of different requests; fewer where there are no more."""
        made: dict[str, V3Request] = {}
        known = [each for each in endpoints.ENDPOINTS if self._contents[each.object]]
        weights = [WEIGHTS[each.action] * (2 if each.object == "Part" else 1) for each in known]
        for _ in range(ATTEMPTS * number):
            if len(made) == number:
                break
            endpoint = self._rng.choices(known, weights)[0]
            path = endpoint.path.replace("{uid}", self._uid(endpoint.object))
            query = self._mistaken(self._query(endpoint))
            request = V3Request(path, query, self._client, origin=f"generated:{len(made) + 1}")
            made.setdefault(request.id, request)
        return list(made.values())

    def _query(self, endpoint: Endpoint) -> Pairs:
        """Make all required parameters, and some others. Those with the same field belong together."""
        accepted = [each for each in v3_parameters.of(endpoint) if f"{{{each.name}}}" not in endpoint.path]
        units: defaultdict[str, list[Parameter]] = defaultdict(list)
        for parameter in (*accepted, *v3_parameters.GLOBALS):
            units[parameter.head or parameter.name].append(parameter)
        required = [unit for unit in units.values() if unit[0].required]
        own = [units[each.head or each.name] for each in accepted if not each.required]
        others = [unit for unit in units.values() if unit not in required]
        # Of the many parameters most are shared: half of the choices are among the endpoint's own.
        chosen = [self._rng.choice(others if self._chance(0.5) or not own else own) for _ in range(self._few())]
        if "include[]" in units and self._chance(INCLUDING):
            chosen.append(units["include[]"])
        pairs: list[tuple[str, str]] = []
        for unit in (*required, *(unit for at, unit in enumerate(chosen) if unit not in chosen[:at])):
            pairs += self._unit(endpoint, unit)
        return tuple(pairs)

    def _unit(self, endpoint: Endpoint, unit: Sequence[Parameter]) -> Iterator[tuple[str, str]]:
        first = unit[0]
        if first.head is None:
            for value in self._values(endpoint.object, first):
                yield self._spelled(first), value
            return
        for _ in range(self._rng.choice((1, 1, 2))):
            field = self._field(endpoint.object, first)
            for parameter in unit:
                # A field is counted only with the first option, include.
                if parameter is first or self._chance(0.4):
                    name = parameter.name.replace(FIELD, field)
                    yield from ((name, value) for value in self._values(endpoint.object, parameter, field))

    def _spelled(self, parameter: Parameter) -> str:
        """Write a list's name in one of the ways that clients do."""
        if parameter.kind != "texts" or not self._chance(0.15):
            return parameter.name
        return parameters.bare(parameter.name) + self._rng.choice(("", "[0]"))

    def _values(self, name: str, parameter: Parameter, field: str | None = None) -> list[str]:
        """Make values of a parameter of searches for objects `name`; several for a list."""
        match parameter.kind:
            case "flag":
                return [self._rng.choice(("true", "true", "1", "false", "0"))]
            case "whole":
                return [str(self._whole(parameter))]
            case "slice":
                return [self._rng.choice(("[0:1]", ":2", "1:5", "[1:]", "-1:", "[:0]"))]
            case "queries":
                number = model.MATCH_QUERIES_MAX if self._chance(0.02) else self._rng.choice((1, 1, 1, 1, 2, 2, 3, 8))
                queries = [self._match_query(place) for place in range(number)]
                return [json.dumps(queries, ensure_ascii=self._chance(0.5))]
            case "texts":
                return [self._text(name, parameter, field) for _ in range(self._rng.choice((1, 1, 2, 3)))]
        return [self._text(name, parameter, field)]

    def _text(self, name: str, parameter: Parameter, field: str | None) -> str:
        match parameters.bare(parameter.name):
            case "uid" | "uids":
                return self._uid(name)
            case "include" | "show" | "hide":
                # The list of the judge, too: a mapping that drops a field must not hide that from this test.
                return self._rng.choice([*field_names.named(self._mappings, name, parameter), *self._fields[name]])
            case "sortby":
                orders = [f"{self._field(name, parameter)} {self._rng.choice(('asc', 'desc'))}" for _ in range(2)]
                return ",".join(orders[: self._rng.choice((1, 1, 1, 2))])
            case "filter[queries]" | "facet[queries]":
                terms = [self._term(name, self._field(name, FILTER)) for _ in range(self._rng.choice((1, 1, 2)))]
                return " AND ".join(terms)
            case "callback":
                return "handle"
        return self._value(name, field) if field else self._words(name)

    def _field(self, name: str, parameter: Parameter) -> str:
        names = field_names.named(self._mappings, name, parameter)
        if field_names.takes_specs(name, parameter) and (not names or self._chance(0.3)):
            specs = [key for part in self._some(name) for key in part.get("specs") or ()]
            names = [field_names.SPECS.replace("<key>", key) for key in specs] or names
        return self._rng.choice(names or list(self._fields[name]))

    def _known(self, name: str, field: str) -> list[str]:
        """Return the values of a field in some objects."""
        found = [value for shown in self._some(name) for value in _values_at(shown, field.split("."))]
        return [json.dumps(value) if isinstance(value, bool) else str(value) for value in found]

    def _value(self, name: str, field: str) -> str:
        """Make a value of a filter: one that an object has, a range, or a pattern."""
        known = self._known(name, field)
        if not known:
            return self._rng.choice(CONDITIONS)
        value = self._rng.choice(known)
        if _is_number(value) and self._chance(0.4):
            return f"[{value} TO *]" if self._chance(0.5) else f"[* TO {value}]"
        return f"{value[:4]}*" if len(value) > 4 and self._chance(0.1) else value

    def _term(self, name: str, field: str) -> str:
        """Make a term of a filter query."""
        value = self._value(name, field)
        if value.startswith("[") or value.isalnum():
            return f"{field}:{value}"
        values = (value, *self._known(name, field))[: 2 if self._chance(0.2) else 1]
        quoted = ['"' + each.replace("\\", "\\\\").replace('"', '\\"') + '"' for each in values]
        return f"{field}:({' OR '.join(quoted)})" if len(quoted) > 1 else f"{field}:{quoted[0]}"

    def _words(self, name: str) -> str:
        """Make words of a search."""
        shown = self._rng.choice(self._contents[name])
        text = str(shown.get("mpn") or shown.get("name") or "")
        maker = str((shown.get("brand") or {}).get("name") or text)
        words = text.split() or [""]
        return self._rng.choice(
            (text, text, words[0], words[-1].lower(), maker, text[:5], f"{text[:4]}*", f"{maker} {text}", "")
        )

    def _match_query(self, place: int) -> dict[str, Any]:
        """Make a query of a match: by one number or words, with some other keys."""
        part = self._rng.choice(self._contents["Part"])
        offer = self._rng.choice(part.get("offers") or [{}])
        seller = (offer.get("seller") or {}).get("name")
        number = self._number(part["mpn"])
        known: Mapping[str, Callable[[], Any]] = {
            "q": lambda: self._words("Part"),
            "brand": lambda: part["brand"]["name"],
            "sku": lambda: offer.get("sku") or number,
            "seller": lambda: seller or "none",
            "reference": lambda: self._rng.choice((place, f"line {place}", str(place), None, {"row": [place]})),
        }
        keys = {each.name: each for each in v3_parameters.QUERY}
        first = self._rng.choice(("mpn", "mpn", "mpn", "mpn_or_sku", "sku", "q"))
        # Text and number together are refused, but by mistake.
        others = [name for name in keys if name not in ("q", *match_queries.NUMBERS)]
        names = [first, *self._rng.sample(others, self._rng.choice((0, 0, 1, 1, 2, 3)))]
        if self._chance(MISTAKES):
            names.append(self._rng.choice(list(keys)))
        return {
            name: self._whole(keys[name]) if keys[name].kind == "whole" else known.get(name, lambda: number)()
            for name in names
        }

    def _number(self, mpn: str) -> str:
        """Write a part number as clients do, at times wrongly."""
        spellings = (mpn, mpn, mpn, mpn, mpn.lower(), mpn.replace("-", ""), f"{mpn[: max(4, len(mpn) // 2)]}*")
        return f"NO-SUCH-{self._rng.randrange(10**6)}" if self._chance(0.05) else self._rng.choice(spellings)

    def _whole(self, parameter: Parameter) -> int:
        most = parameter.maximum if parameter.maximum is not None else max(LENGTHS)
        return most if self._chance(0.02) else min(most, self._rng.choice(LENGTHS))

    def _mistaken(self, query: Pairs) -> Pairs:
        """Make a mistake in some queries: a value of another kind, or a parameter that is missing."""
        if not query or not self._chance(MISTAKES):
            return query
        at = self._rng.randrange(len(query))
        wrong = ((query[at][0], self._rng.choice(UNLIKELY)),) if self._chance(0.7) else ()
        return (*query[:at], *wrong, *query[at + 1 :])

    def _uid(self, name: str) -> str:
        """Choose a uid, mostly that of an object, at times a former one."""
        if self._former[name] and self._chance(0.1):
            return self._rng.choice(self._former[name])
        unknown = self._chance(0.05) or not self._contents[name]
        return f"{self._rng.randrange(16**15):016x}" if unknown else self._rng.choice(self._contents[name])["uid"]

    def _some(self, name: str) -> list[dict[str, Any]]:
        return self._rng.choices(self._contents[name], k=5)

    def _few(self) -> int:
        return self._rng.choice((0, 1, 1, 2, 2, 3, 4, 6))

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share


def _values_at(value: Any, path: Sequence[str]) -> Iterator[Any]:
    """Yield the values at a path of an object, of all elements of lists."""
    if isinstance(value, list):
        for each in value:
            yield from _values_at(each, path)
    elif not path:
        if value not in (None, "") and not isinstance(value, dict):
            yield value
    elif isinstance(value, dict):
        yield from _values_at(value.get(path[0]), path[1:])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
