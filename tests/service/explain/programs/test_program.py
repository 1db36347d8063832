"""Programs hold what their request needs, nothing else, and no text of a client as code."""

import ast
import json
import re
from urllib.parse import quote

import pytest
from support import cases

from proxy.explain.explainer import Explainer
from proxy.explain.programs import program, python_program
from proxy.explain.programs.flows import NoProgramError
from proxy.traffic.v3_request import V3Request, parse_target

HOSTILE = '"""`*/\n\r\u2028END\nJSON\nJQ\n$(touch x)${x}\\(1)\\u0041\'; rm -rf "$x" #\x7f'


def written(explainer: Explainer, target: str, language: program.Language = "python", fields: str | None = None) -> str:
    path, query, apikey = parse_target(target)
    return program.write(explainer, explainer.explain(V3Request(path, query), apikey=apikey), language, fields)


def match(*queries: object, more: str = "") -> str:
    return f"/v3/parts/match?queries={quote(json.dumps(queries))}{more}"


def test_only_what_the_fields_need_is_in_a_program(explainer: Explainer) -> None:
    short = written(explainer, match({"mpn": "A"}), fields="mpn")
    assert len(short.splitlines()) < 230
    for name in ("SELLER_UIDS", "SPEC_KEYS", "offer_rank", "inventoryLevel", "timestamp"):
        assert name not in short
    whole = written(explainer, match({"mpn": "A"}))
    for name in ("SELLER_UIDS", "offer_rank", "inventoryLevel", "timestamp"):
        assert name in whole
    assert "SPEC_KEYS" not in whole


def test_no_definition_is_unused_or_missing(explainer: Explainer) -> None:
    text = written(explainer, match({"mpn": "A"}, {"mpn": "B*"}, more="&include[]=specs&include[]=imagesets"))
    defined = python_program.DEFINITION.findall(text)
    assert len(defined) == len(set(defined))
    assert [name for name in defined if len(re.findall(rf"\b{name}\b", text)) < 2] == []
    assert {"map_part", "map_image_set"} <= set(defined)


@pytest.mark.parametrize("language", program.LANGUAGES)
def test_documents_declare_no_variable_that_is_not_set(language: program.Language, explainer: Explainer) -> None:
    short = written(explainer, "/v3/parts/search?q=a", language, "mpn")
    assert "$inStockOnly" not in short
    assert "$filters" not in short
    sorted_page = written(explainer, "/v3/parts/search?q=a&sortby=mpn+desc", language, "mpn")
    assert "$sortDir: SupSortDirection" in sorted_page
    assert "sortDir: $sortDir" in sorted_page


def test_only_programs_for_parts_have_a_market(explainer: Explainer) -> None:
    assert "COUNTRY" in written(explainer, match({"mpn": "A"}))
    assert "COUNTRY" not in written(explainer, "/v3/brands/search?q=texas")


def test_a_default_of_null_is_idiomatic(explainer: Explainer) -> None:
    target = match({"mpn": "A"}, more="&show[]=offers.eligible_region")
    assert '"" if part_offer.eligibleRegion is None else' in written(explainer, target)


def test_short_constants_stand_together(explainer: Explainer) -> None:
    assert '\n\nLIST = "supManufacturers"\nSEARCHED = "texas"\n' in written(explainer, "/v3/brands/search?q=texas")


def test_text_of_a_client_is_data(explainer: Explainer) -> None:
    target = match({"mpn": HOSTILE, "reference": HOSTILE}, {"q": HOSTILE})
    tree = ast.parse(written(explainer, target))
    constants = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert HOSTILE in constants
    for language in program.LANGUAGES:
        text = written(explainer, target, language)
        # It is in one line, as JSON, and percent-encoded in the comment.
        assert "\u2028" not in text
        assert "\r" not in text


@pytest.mark.parametrize("language", program.LANGUAGES)
def test_no_program_has_a_key_or_a_secret(language: program.Language, explainer: Explainer) -> None:
    text = written(explainer, match({"mpn": "A"}, more="&apikey=EXAMPLE_KEY"), language)
    assert "EXAMPLE_KEY" not in text
    assert "NEXAR_CLIENT_SECRET" in text


@cases.parametrize("target, reason")
def test_a_request_without_a_program_has_a_reason(target: str, reason: str, explainer: Explainer) -> None:
    with pytest.raises(NoProgramError) as raised:
        written(explainer, target)
    assert reason in str(raised.value)


def test_a_program_says_what_it_leaves_out(explainer: Explainer) -> None:
    text = written(explainer, "/v3/parts/search?q=a&facet[fields][brand.name][include]=true")
    assert "Left out: facets, statistics and spec_metadata" in text
    text = written(explainer, "/v3/sellers/search?q=a&sortby=name+asc")
    assert "Left out: filters and sortby" in text
    text = written(explainer, "/v3/parts/search?filter[fields][brand.name][]=Nobody")
    assert "Left out: the search for ids of names in filters" in text
    assert 'filters": {"manufacturer_id": ["Nobody"]}' in text


def test_addresses_and_market_are_those_of_the_configuration(explainer: Explainer) -> None:
    text = written(explainer, match({"mpn": "A"}))
    assert '"https://api.nexar.com/graphql"' in text
    assert 'COUNTRY, CURRENCY = "US", "USD"' in text
