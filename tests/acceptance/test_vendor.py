"""The vendor's services, each as its documentation and its clients know it, through URLs."""

import asyncio
import base64
import hashlib
import http.client
import json
import time
import urllib.parse
from collections.abc import Callable
from typing import Any

import aiohttp
import graphql
import jwt
import pytest
from acceptance.running import Clock, Processes, Response, request, until
from acceptance.vendor import Page, Person, Vendor

import nexar_sandbox

FREE = "{ supAttributes { id } }"
USER = "{ desUserByAuth { userName } }"
CALLBACK = "http://localhost:3000/login"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
AURORA = "https://aurora-instruments.365.example"
SCOPES = "openid user.access design.domain supply.domain offline_access"
DAY = 86_400


@pytest.fixture(scope="module")
def vendor(module_processes: Processes) -> Vendor:
    return Vendor(module_processes.sandbox("--legacy-rate", "0"))


@pytest.fixture(scope="module")
def token(vendor: Vendor) -> str:
    """The first application's."""
    return vendor.token()


@pytest.fixture(scope="module")
def ada(vendor: Vendor) -> Person:
    """A user who has signed in."""
    person = Person(vendor)
    assert "Sandbox" in person.sign_in(person.open("/portal")).text
    return person


@pytest.fixture(scope="module")
def boards(vendor: Vendor, ada: Person, token: str) -> dict[str, str]:
    """The id and the credentials of an application for supply and design, which a user makes in the portal."""
    fields = {"name": "Boards", "domain-design": "on", "plan": "enterprise", "callbacks": CALLBACK}
    assert CALLBACK in ada.fill(ada.open("/portal/applications/new"), "/new", **fields).text
    query = "{ admOrganizations { applications { id name scopes { scope } security { clientId clientSecret } } } }"
    (organization,) = vendor.data(query, token)["admOrganizations"]
    (found,) = (each for each in organization["applications"] if each["name"] == "Boards")
    assert {each["scope"] for each in found["scopes"]} == {"supply.domain", "design.domain"}
    return {
        "id": found["id"],
        "client_id": found["security"]["clientId"],
        "client_secret": found["security"]["clientSecret"],
    }


@pytest.fixture(scope="module")
def credentials(boards: dict[str, str]) -> dict[str, str]:
    return {name: boards[name] for name in ("client_id", "client_secret")}


@pytest.fixture(scope="module")
def user_token(vendor: Vendor, ada: Person, boards: dict[str, str], credentials: dict[str, str]) -> str:
    """A token of Ada for that application, by the password flow, which has to be enabled first."""
    who = {"username": vendor.ways["user_email"], "password": vendor.ways["user_password"], "scope": SCOPES}
    form = {**credentials, "grant_type": "password", **who}
    refused = vendor.request_token(**form)
    assert (refused.status, refused.json) == (400, {"error": "unauthorized_client"})
    edit = ada.open(f"/portal/applications/{boards['id']}/edit")
    assert ada.fill(edit, "/edit", **{"flow-password": "on"}).status == 200
    return vendor.token(**form)


def test_client_credentials(vendor: Vendor) -> None:
    reply = vendor.request_token(**vendor.design, scope="supply.domain")
    assert (reply.status, list(reply.json)) == (200, ["access_token", "expires_in", "token_type", "scope"])
    assert [reply.json[name] for name in ("expires_in", "token_type", "scope")] == [DAY, "Bearer", "supply.domain"]
    assert "no-store" in reply.headers["cache-control"]
    key = jwt.PyJWKClient(vendor.get("/.well-known/openid-configuration")["jwks_uri"]).get_signing_keys()[0]
    claims = jwt.decode(reply.json["access_token"], key, algorithms=["RS256"], options={"verify_aud": False})
    assert (claims["exp"] - claims["iat"], claims["client_id"]) == (DAY, vendor.design["client_id"])
    assert claims["scope"] == ["supply.domain"]


@pytest.mark.parametrize("agent", ["python-requests/2.9.1", ""])
def test_token_request_without_a_scope_gets_all_scopes(vendor: Vendor, agent: str) -> None:
    reply = vendor.request_token(**vendor.design, user_agent=agent)
    assert (reply.status, set(reply.json["scope"].split())) == (200, {"supply.domain", "design.domain"})


def test_refused_token_requests(vendor: Vendor, credentials: dict[str, str]) -> None:
    for form, error in (
        ({**credentials, "client_secret": "wrong"}, "invalid_client"),
        ({"client_id": "nobody"}, "invalid_client"),
        ({**vendor.design, "grant_type": "magic"}, "unsupported_grant_type"),
        ({**vendor.design, "scope": "world.domain"}, "invalid_scope"),
    ):
        refused = vendor.request_token(**form)
        assert (refused.status, refused.json) == (400, {"error": error})


def authorize(vendor: Vendor, client_id: str) -> Page:
    """Send a person to the sign-in page and through the consent page, back to the application."""
    asked = {"client_id": client_id, "response_type": "code", "redirect_uri": CALLBACK, "scope": SCOPES, "state": "a b"}
    asked |= {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}
    person = Person(vendor)
    page = person.sign_in(person.open("/connect/authorize?" + urllib.parse.urlencode(asked)))
    return page if page.url.startswith(CALLBACK) else person.fill(page, "/consent", decision="allow")


def redeem(vendor: Vendor, code: str, credentials: dict[str, str], verifier: str = VERIFIER) -> Response:
    form = {"grant_type": "authorization_code", "redirect_uri": CALLBACK, "code_verifier": verifier, "code": code}
    return vendor.request_token(**credentials, **form)


def test_authorization_code_with_callback_url_and_refresh(vendor: Vendor, credentials: dict[str, str]) -> None:
    back = authorize(vendor, credentials["client_id"])
    assert (back.url.partition("?")[0], back.parameters["state"]) == (CALLBACK, "a b")
    first = redeem(vendor, back.parameters["code"], credentials).json
    assert list(first) == ["id_token", "access_token", "expires_in", "token_type", "refresh_token", "scope"]
    again = {**credentials, "grant_type": "refresh_token", "refresh_token": first["refresh_token"]}
    second = vendor.request_token(**again).json
    assert vendor.data(USER, second["access_token"]) == {"desUserByAuth": {"userName": "ada"}}
    assert vendor.request_token(**again).json == {"error": "invalid_grant"}  # it is used once


def test_code_needs_its_verifier_and_the_callback_url_of_the_application(
    vendor: Vendor, credentials: dict[str, str]
) -> None:
    code = authorize(vendor, credentials["client_id"]).parameters["code"]
    assert redeem(vendor, code, credentials, "w" * 43).json == {"error": "invalid_grant"}
    asked = f"client_id={credentials['client_id']}&response_type=code&redirect_uri=http://localhost:3000/other"
    assert Person(vendor).open(f"/connect/authorize?{asked}").status == 400


def test_password_only_where_it_is_enabled(vendor: Vendor, user_token: str) -> None:
    assert vendor.data(USER, user_token) == {"desUserByAuth": {"userName": "ada"}}


@pytest.fixture(scope="module")
def turned(module_processes: Processes, needs_program: Callable[[str], str]) -> tuple[Vendor, Clock]:
    """A vendor with a clock that can be turned."""
    needs_program("faketime")
    clock = module_processes.clock()
    clock.turn_to(1_782_000_000)  # 2026-06-21
    return Vendor(module_processes.sandbox(clock=clock)), clock


def test_windows_of_token_requests(turned: tuple[Vendor, Clock]) -> None:
    vendor, clock = turned

    def statuses(number: int, seconds: float) -> list[int]:
        """Send so many token requests, with so many seconds between them. Refused credentials count like others."""
        found, form = [], {**vendor.design, "client_secret": "wrong"}
        for _ in range(number):
            found.append(vendor.request_token(False, **form).status)
            clock.turn(seconds)
        return found

    assert statuses(3, 0) == [400, 400, 429]
    clock.turn(900)
    assert statuses(201, 0.6) == [400] * 200 + [429]


def test_token_is_valid_for_a_day_and_parts_are_a_thousand_a_month(turned: tuple[Vendor, Clock]) -> None:
    vendor, clock = turned
    token = vendor.token()
    parts = '{ supSearch(q: "", limit: 100) { results { part { id } } } }'
    answers = [vendor.ask(parts, token).json for _ in range(11)]
    assert ["errors" in each for each in answers] == [False] * 10 + [True]
    assert answers[-1]["data"] is None
    assert answers[-1]["errors"][0]["message"].startswith("You have exceeded your part limit of 1000.")
    clock.turn(DAY - 60)
    assert vendor.ask(FREE, token).status == 200
    clock.turn(61)
    expired = vendor.ask(FREE, token)
    assert (expired.status, expired.json["errors"][0]["message"]) == (401, "The access token has expired")
    clock.turn(10 * DAY)
    assert "errors" not in vendor.ask(parts, vendor.token()).json


def test_discovery_document_names_the_endpoints(vendor: Vendor) -> None:
    document = vendor.get("/.well-known/openid-configuration")
    assert (document["issuer"], document["token_endpoint"]) == (vendor.url, vendor.ways["token_url"])
    assert {"client_credentials", "authorization_code", "refresh_token"} <= set(document["grant_types_supported"])
    assert document["code_challenge_methods_supported"] == ["S256"]


def test_request_without_a_token_is_refused(vendor: Vendor) -> None:
    for token in ("", "nonsense"):
        refused = vendor.ask(FREE, token)
        assert (refused.status, refused.json["errors"][0]["extensions"]["code"]) == (401, "AuthInvalidToken")


def test_query_without_the_word_query(vendor: Vendor, token: str) -> None:
    assert len(vendor.data(FREE, token)["supAttributes"]) > 100


def test_missing_required_argument(vendor: Vendor, token: str) -> None:
    reply = vendor.ask("{ supMultiMatch { hits } }", token)
    (error,) = reply.json["errors"]
    assert (reply.status, error["message"]) == (400, "The argument `queries` is required.")


def test_object_without_sub_fields_is_null(vendor: Vendor, token: str) -> None:
    (part,) = vendor.data('{ supParts(ids: ["54445"]) { mpn manufacturer sellers } }', token)["supParts"]
    assert part == {"mpn": "SN74S74N", "manufacturer": None, "sellers": None}


def test_url_of_a_part_has_the_name_of_the_site(vendor: Vendor, token: str) -> None:
    (part,) = vendor.data('{ supParts(ids: ["54445"]) { slug octopartUrl } }', token)["supParts"]
    assert part["octopartUrl"] == f"https://octopart.com{part['slug']}"


def test_supply_needs_its_scope_and_design_a_user(vendor: Vendor, token: str, user_token: str) -> None:
    design = vendor.token(**vendor.design, scope="design.domain")
    for query, sender in ((USER, token), (USER, design), (FREE, design)):
        refused = vendor.ask(query, sender).json
        assert (refused["data"], refused["errors"][0]["extensions"]["code"]) == (None, "AUTH_NOT_AUTHORIZED")
    assert list(vendor.data("{ desUserByAuth { userName } supAttributes { id } }", user_token)) == [
        "desUserByAuth",
        "supAttributes",
    ]


def test_admin_queries_show_the_organization_with_limits_and_usage(vendor: Vendor, token: str) -> None:
    query = "{ admOrganizations { name users { userName } applications { id } } }"
    (organization,) = vendor.data(query, token)["admOrganizations"]
    assert (organization["name"], organization["users"][0]) == ("Sandbox", {"userName": vendor.ways["user_email"]})
    query = "query($id: String!) { admApplicationById(id: $id) { supplyCounts { partCounter partLimit } } }"
    counts = vendor.data(query, token, id=organization["applications"][0]["id"])["admApplicationById"]["supplyCounts"]
    assert counts == {"partCounter": vendor.sandbox.parts, "partLimit": 1000}


PROJECT = """query($url: String!) { desProjects(workspaceUrl: $url, first: 1) { nodes { id
  design { variants { bom { items { totalCount nodes { component { name } } } } } } } } }"""


def project(vendor: Vendor, token: str) -> Any:
    return vendor.data(PROJECT, token, url=AURORA)["desProjects"]["nodes"][0]


def rest_requests(vendor: Vendor) -> set[str]:
    """The requests that reached the REST services behind the GraphQL service."""
    return {each["operation"] for each in vendor.sandbox.journal()["entries"] if each["service"] == "design"}


def test_design_operation_and_mutation_go_through_the_rest_services(vendor: Vendor, user_token: str) -> None:
    found = project(vendor, user_token)
    assert found["design"]["variants"][0]["bom"]["items"]["totalCount"] > 0
    task = {"name": "Measure", "description": "The ripple"}
    made = vendor.mutate("desCreateProjectTask", "task { id }", user_token, projectId=found["id"], task=task)
    query = "query($id: ID!) { desProjectTasks(projectId: $id, last: 1) { nodes { id name } } }"
    tasks = vendor.data(query, user_token, id=found["id"])["desProjectTasks"]["nodes"]
    assert tasks == [{"id": made["task"]["id"], "name": "Measure"}]
    assert {"projects GET /projects", "library GET /components", "collaboration POST /tasks"} < rest_requests(vendor)


def test_manufacturing_operation_goes_through_the_rest_services(vendor: Vendor, user_token: str) -> None:
    package = {"projectId": project(vendor, user_token)["id"], "name": "For the maker.zip", "shareWith": []}
    made = vendor.mutate("desCreateManufacturePackage", "jobId", user_token, **package)
    query = """query($id: ID!) { desManufacturePackageCreationJob(id: $id) { status }
      desManufacturePackageById(id: $id) { name } }"""
    assert vendor.data(query, user_token, id=made["jobId"]) == {
        "desManufacturePackageCreationJob": {"status": "DONE"},
        "desManufacturePackageById": {"name": package["name"]},
    }
    assert {"projects POST /jobs", "projects GET /jobs"} < rest_requests(vendor)


WATCH = """subscription($input: DesOnCommentUpdatedInput!) { desOnCommentUpdated(input: $input) {
  action data { commentText } } }"""


async def test_subscription_hears_of_a_comment(vendor: Vendor, user_token: str) -> None:
    id_ = project(vendor, user_token)["id"]
    threads = "query($id: ID!) { desCommentThreads(projectId: $id) { commentThreadId } }"
    comment = {**vendor.data(threads, user_token, id=id_)["desCommentThreads"][0], "entityId": id_, "text": "Heard?"}
    variables = {"input": {"token": user_token, "workspaceUrl": AURORA}}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(vendor.ways["graphql_url"], protocols=("graphql-transport-ws",)) as socket,
    ):
        await socket.send_json({"type": "connection_init", "payload": {"token": user_token}})
        assert (await socket.receive_json(timeout=10))["type"] == "connection_ack"
        await socket.send_json({"id": "1", "type": "subscribe", "payload": {"query": WATCH, "variables": variables}})
        while "collaboration GET /events" not in rest_requests(vendor):
            await asyncio.sleep(0.02)
        vendor.mutate("desCreateComment", "commentId", user_token, **comment)
        heard = (await socket.receive_json(timeout=10))["payload"]["data"]
    assert heard == {"desOnCommentUpdated": {"action": "CommentAdded", "data": {"commentText": "Heard?"}}}


def test_ide_has_the_credentials_of_the_first_application_or_of_another(
    vendor: Vendor, ada: Person, boards: dict[str, str]
) -> None:
    assert "graphiql" in ada.open("/graphql").text.lower()
    for number, client_id in enumerate((vendor.client["client_id"], boards["client_id"])):
        if number:
            ada.fill(ada.open(f"/portal/applications/{boards['id']}"), "/ide")
        session = json.loads(ada.open("/ide/session", Accept="application/json").text)
        assert session["application"]["settings"]["client_id"] == client_id
        asked = json.dumps({"grant": "client_credentials"}).encode()
        headers = {"Content_Type": "application/json", "X_CSRF_Token": session["csrf"]}

        def issue() -> str:
            """Request a token as the page does; nothing while the rate limit holds."""
            return str(json.loads(ada.open("/ide/token", asked, **headers).text).get("access_token", ""))  # noqa: B023

        issued = until(issue, "a token is issued")
        assert jwt.decode(issued, options={"verify_signature": False})["client_id"] == client_id
        assert vendor.ask(FREE, issued).status == 200


def test_sdl_is_a_file_and_needs_no_token(vendor: Vendor) -> None:
    reply = request(vendor.ways["graphql_url"], "?sdl")
    query = graphql.build_schema(reply.text).query_type
    assert query is not None
    assert "attachment" in reply.headers["content-disposition"]
    assert [sum(name.startswith(prefix) for name in query.fields) for prefix in ("sup", "adm")] == [19, 2]
    assert vendor.data('{ __type(name: "SupPart") { name } }') == {"__type": {"name": "SupPart"}}


def test_old_service_matches_three_parts_at_most(vendor: Vendor) -> None:
    found = vendor.get('/v3/parts/match?apikey=EXAMPLE_KEY&queries=[{"mpn":"SN74S74N"}]')
    (result,) = found["results"]
    assert (found["__class__"], result["hits"], len(result["items"])) == ("PartsMatchResponse", 4, 3)
    assert {item["mpn"] for item in result["items"]} == {"SN74S74N"}


@pytest.mark.parametrize(
    "path, words", [("brands", "texas"), ("categories", "resistors"), ("parts", "SN74S74N"), ("sellers", "digi-key")]
)
def test_old_service_has_lists(vendor: Vendor, path: str, words: str) -> None:
    (result,) = vendor.get(f"/v3/{path}/search?apikey=EXAMPLE_KEY&q={words}&limit=1")["results"]
    uid = result["item"]["uid"]
    assert vendor.get(f"/v3/{path}/{uid}?apikey=EXAMPLE_KEY")["uid"] == uid


PART = '{ supParts(ids: ["54445"]) { mpn } }'
FAULTS = {  # what a client sees, and the parts that are billed
    "latency ms=300": ("200 {", 1),
    "reset": ("ConnectionResetError", 0),
    "reset when=after": ("ConnectionResetError", 1),
    "5xx status=502": ("502 <html", 0),
    "429 retry_after=7": ("429", 0),
    "401": ("401 AuthInvalidToken", 0),
    "cut": ("IncompleteRead", 1),
    "malformed": ("200 {", 1),
    "slow-loris ms=1": ("200 {", 1),
    "quota": ("200 You have exceeded your part limit", 0),
    "expired": ("401 AuthExpiredToken", 0),  # the last: the token has expired from then on
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(vendor: Vendor, token: str, fault: str) -> None:
    shown, billed = FAULTS[fault]
    before, begun = vendor.sandbox.parts, time.monotonic()
    vendor.sandbox.inject(fault)
    try:
        reply = vendor.ask(PART, token)
        seen, text = f"{reply.status} {reply.text}", reply.text
    except (ConnectionResetError, http.client.IncompleteRead) as error:
        seen, text = type(error).__name__, "{}"
    finally:
        vendor.sandbox.inject()
    assert all(word in seen for word in shown.split())
    assert vendor.sandbox.parts - before == billed
    assert (time.monotonic() - begun >= 0.3) or "latency" not in fault
    if fault == "malformed":
        with pytest.raises(json.JSONDecodeError):
            json.loads(text)
    assert vendor.sandbox.journal(0)["totals"]["faults"][fault.split(maxsplit=1)[0]] >= 1


def test_unknown_fault_is_refused(vendor: Vendor) -> None:
    reply = request(vendor.url, "/admin/faults", method="PUT", body='["flood"]')
    assert (reply.status, "flood" in reply.json["error"]) == (400, True)


def test_journal_has_the_operation_but_no_values(vendor: Vendor, user_token: str) -> None:
    vendor.data('query Mine { supParts(ids: ["54445"]) { mpn } }', user_token)
    (entry,) = vendor.sandbox.journal(1)["entries"]
    assert [entry[name] for name in ("service", "operation", "fields", "parts")] == ["graphql", "Mine", ["supParts"], 1]
    assert "54445" not in json.dumps(entry)


def test_fixture_for_the_tests_of_a_client(nexar: nexar_sandbox.Sandbox) -> None:
    form = {"grant_type": "client_credentials", "client_id": nexar.client_id, "client_secret": nexar.client_secret}
    headers = {"content_type": "application/x-www-form-urlencoded"}
    issued = request(nexar.token_url, method="POST", body=urllib.parse.urlencode(form), **headers).json["access_token"]
    asked = {"method": "POST", "body": json.dumps({"query": PART}), "authorization": f"Bearer {issued}"}
    nexar.faults.replace(nexar_sandbox.parse_faults("429 count=1"))
    assert [request(nexar.graphql_url, content_type="application/json", **asked).status for _ in range(2)] == [429, 200]
    assert nexar.billed_parts == 1
