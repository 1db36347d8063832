"""`v3bridge explain`: text, JSON, files and standard input; keys and passwords in no output."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from support.running_commands import ROOT, run_in_this_process

from proxy.explain.explanation import ExplainedFile, Explanation

SECRET = "PLANTED_SECRET_4711"
TARGET = "/v3/parts/match?queries=[%7B%22mpn%22:%22SN74S74N%22%7D]"


explain = partial(run_in_this_process, "explain")


def test_json_is_the_whole_explanation() -> None:
    done = explain("--json", f"{TARGET}&include[]=specs&apikey=EXAMPLE_KEY")

    explained = msgspec.json.decode(done.stdout, type=Explanation)
    assert (done.returncode, done.stderr) == (0, "")
    assert explained.request == "/v3/parts/match?queries=[{%22mpn%22:%22SN74S74N%22}]&include[]=specs&apikey=$APIKEY"
    assert explained.client is not None
    assert (explained.client.chosen_by, explained.client.problem) == ("the request's API key", None)
    assert [each.name for each in explained.operations] == ["supMultiMatch"]
    assert "specs.<key>.value" in {each.path for each in explained.fields}


def test_json_conforms_to_the_schema(tmp_path: Path) -> None:
    schema = (ROOT / "docs/reference/explain.schema.json").read_text(encoding="utf-8")
    validator = jsonschema.Draft202012Validator(json.loads(schema))
    (tmp_path / "urls.txt").write_text(f"{TARGET}\n/v3/parts/search?q=x&limit=999\n/v3/brands/search?q=x\n")
    for given in (TARGET, "/v3/parts/match", str(tmp_path / "urls.txt")):
        validator.validate(json.loads(explain("--json", given).stdout))


@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_a_terminal_of_any_width_shows_every_name_whole(width: str) -> None:
    done = explain("--queries", TARGET, FORCE_COLOR="1", TERM="xterm-256color", NO_COLOR="", COLUMNS=width)

    assert done.returncode == 0
    assert "…" not in done.stdout
    assert "\x1b[" in done.stdout


def test_a_pipe_gets_plain_text_without_trailing_blanks() -> None:
    done = explain("--queries", TARGET)

    assert "query supMultiMatch($queries: " in done.stdout
    assert "\x1b" not in done.stdout
    assert [line for line in done.stdout.splitlines() if line != line.rstrip()] == []


def test_source_prints_the_compiled_mapping_functions() -> None:
    done = explain("--source", "PartOffer")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("def ")


def test_nothing_is_claimed_about_caches_where_nothing_is_sent() -> None:
    done = explain("/v3/parts/match?queries=[%7B%22mpm%22:%22SN74S74N%22%7D]")

    assert "nothing: the proxy knows the response without it" in done.stdout
    assert "Caches" not in done.stdout


def test_a_file_is_explained_by_kinds(tmp_path: Path) -> None:
    lines = [f"{TARGET.replace('S74N', name)}&apikey=K{name}" for name in ("A", "B", "A")]
    (tmp_path / "urls.txt").write_text("\n".join([*lines, "/v3/parts/search?q=x&limit=999", "/v2/parts", "junk"]))

    explained = msgspec.json.decode(explain("--json", str(tmp_path / "urls.txt")).stdout, type=ExplainedFile)

    assert (explained.requests, explained.occurrences, explained.parts_max) == (3, 4, 6)
    assert [(each.endpoint, each.requests, each.occurrences) for each in explained.kinds] == [
        ("/parts/match", 2, 3),
        ("/parts/search", 1, 1),
    ]
    assert explained.kinds[1].example.error is not None
    assert sum(explained.skipped.values()) == 2
    text = explain(str(tmp_path / "urls.txt")).stdout
    assert "of 2 kinds" in text
    assert "400" in text


def test_a_parts_list_needs_no_api_key(tmp_path: Path) -> None:
    (tmp_path / "BOM.csv").write_text("MPN;Manufacturer\nSN74S74N;TI\n1N4007;Onsemi\n")

    done = explain(str(tmp_path / "BOM.csv"))

    assert "supMultiMatch for queries[0-1], up to 6 parts" in done.stdout
    assert "API key: as it is" not in done.stdout


@pytest.mark.parametrize(
    "given",
    [
        TARGET,
        f'9.9.9.9 - - [x] "GET {TARGET} HTTP/1.1" 200 1\n9.9.9.9 - - [x] "GET {TARGET} HTTP/1.1" 200 1\n',
    ],
)
def test_standard_input_may_have_any_form(given: str) -> None:
    done = explain("-", given=given)

    assert (done.returncode, done.stderr) == (0, "")
    assert "supMultiMatch" in done.stdout


@pytest.mark.parametrize(
    "arguments, part",
    [
        (["no_such.log"], "neither a request nor a file"),
        (["-"], "nothing to explain"),
        ([TARGET, "--application", "nobody"], "no application is called 'nobody'; there are demo"),
        ([TARGET, "--source", "Part"], "give a request, a file of requests, or --source"),
        (["--source", "Party"], "no mapping describes 'Party'"),
        ([TARGET, "--config", "no_such.yaml"], "no_such.yaml"),
        ([], "INPUT"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: list[str], part: str) -> None:
    done = explain(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert part in done.stderr
    assert len(done.stderr.splitlines()) == 1


FORMS: dict[str, Any] = {
    "apikey": f"{TARGET}&apikey={SECRET}",
    "apikey in capitals": f"{TARGET}&APIKEY[]={SECRET}",
    "another parameter": f"{TARGET}&api_key={SECRET}&token[]={SECRET}",
    "twice": f"{TARGET}&apikey={SECRET}&include[]={SECRET}&show[]={SECRET}",
    "a query": f"/v3/parts/match?apikey={SECRET}&queries=[%7B%22mpn%22:%22{SECRET}%22,%22{SECRET}%22:1%7D]",
    "a path": f"/v3/partz/{SECRET}?apikey={SECRET}",
    "a uid": f"/v3/parts/{SECRET}?apikey={SECRET}",
    "a password": f"https://x:{SECRET}@octopart.com/api{TARGET}",
    "no request": f"apikey={SECRET}",
    "JSON": json.dumps({"url": TARGET, "headers": [{"value": SECRET}], "response": SECRET}),
    "names in a log": f'x "GET {TARGET}&apikey={SECRET}&include[]={SECRET}&{SECRET}=1 HTTP/1.1" 200 1\n' * 2,
    "a log": f'{SECRET} "GET {TARGET}&apikey={SECRET}" 200 "{SECRET}"\n' * 2,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("option", ["--queries", "--json"])
def test_secrets_of_an_input_are_in_no_output(form: str, option: str) -> None:
    done = explain(option, "-", given=FORMS[form])

    assert done.returncode in (0, 2)
    assert SECRET not in done.stdout + done.stderr


def test_secrets_of_a_configuration_are_in_no_output(tmp_path: Path) -> None:
    file = tmp_path / "our.yaml"
    application = {"apikeys": [SECRET], "client_id": f"id-{SECRET}", "client_secret": f"secret-{SECRET}"}
    file.write_text(json.dumps({"applications": {"erp": application}}))

    done = explain("--json", "--config", str(file), f"{TARGET}&apikey={SECRET}")

    assert json.loads(done.stdout)["client"]["chosen_by"] == "the request's API key"
    assert SECRET not in done.stdout + done.stderr
