"""Planted client secrets and API keys are in no response, log, page, file of the store, report or error.

Requests are of every kind: served, refused, malformed, of a failing upstream, and with the key in a wrong place.
"""

import html
import itertools
import json
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from acceptance import bills, running

KEY, WRONG_KEY, REFUSED_KEY = "k3yPLANTED", "wr0ngPLANTED", "refus3dPLANTED"
STRANGE_KEY = 'str4nge"é+PLANTED'  # every encoding writes its characters in its own way
WRONG_SECRET = "s3cretPLANTED"
TARGETS = (
    bills.match("SN74S74N", key=KEY),
    bills.match("SN74S74N", key=KEY, more="&callback=cb&pretty_print=1&include[]=specs"),
    bills.match("SN74S74N", key=WRONG_KEY),
    bills.match("SN74S74N", key=REFUSED_KEY),
    bills.match("SN74S74N", key=KEY, more=f"&apikey={WRONG_KEY}"),
    bills.match("SN74S74N", key=KEY, more="&slice[offers]=x"),
    bills.match(*["SN74S74N"] * 21, key=KEY),
    f"/v3/parts/match?apikey={KEY}&queries=[",
    f"/v3/parts/match/?key={KEY}",
    f"/v3/{KEY}/nothing?apikey={KEY}",
    *(f"/{path}?apikey={KEY}" for path in ("healthz", "readyz", "metrics", "status")),
    *(
        f"/graphql?token={key}&query={quote(query)}"
        for key in (KEY, WRONG_KEY, REFUSED_KEY)
        for query in ("{ supSellers { name } }", '{ supParts(ids: ["1"]) { mpn } }', "{")
    ),
    f"/graphql/{KEY}?token={WRONG_KEY}",
    f"/connect/token?token={WRONG_KEY}&client_secret={WRONG_KEY}",
)
FORM = f"grant_type=client_credentials&client_id=x&client_secret={WRONG_KEY}"
LINES = (
    f"GET /v3/parts/match?apikey={KEY}&q={'x' * 140_000} HTTP/1.1",
    f"GET /v3/parts/match?apikey={KEY} and blanks HTTP/1.1",
    f"GET /v3/parts/match?apikey={KEY} HTTP/9.9",
    KEY,
    f"GET http://{KEY}@octopart.com:99999/v3/parts/match?apikey={KEY} HTTP/1.1",
    f"POST /v3/parts/match?apikey={KEY} HTTP/1.1\r\nContent-Length: 3\r\nContent-Encoding: gzip\r\n\r\n{KEY}",
    f"PUT /v3/parts/match?apikey={KEY} HTTP/1.1",
    f"GET /v3/parts/match HTTP/1.1\r\nX-Key {KEY}",
    f"GET /v3/parts/match HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{KEY}",
    f"GET /v3/parts/match?apikey={KEY}#{KEY} HTTP/1.1\r\nCookie: a={KEY}\r\nReferer: {KEY}",
    f"GET /v3/parts/match?apikey={KEY} HTTP/1.1\r\nX-Request-Id: {KEY}\r\nUser-Agent: erp/1 key={KEY}",
    f"POST /connect/token HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    f"Content-Length: {len(FORM)}\r\n\r\n{FORM}",
    *(
        f"POST /{path}?token={key} HTTP/1.1\r\n{name}: {value}\r\nContent-Type: application/json\r\n"
        f'Content-Length: 37\r\n\r\n{{"query": "{{ admOrganizations{{name}} }}"}}'
        for path in ("graphql", "api/v4/endpoint")
        for key in (KEY, WRONG_KEY)
        for name, value in (("Authorization", f"Bearer {key}"), ("token", key), ("X-Nexar-Authorization", key))
    ),
)
MISPLACED = (
    "/v3/parts/match&apikey={key}",
    "/v3/parts/match;apikey={key}",
    "/v3/parts/match/apikey/{key}",
    "/v3/parts/match?q=1%26apikey={key}",
    "/v3/parts/match?apikey%3D{key}",
    "/v3/parts/match?apikey%253D{key}",
    "/v3/parts/match?APIKEY:{key}",
    "/v3/parts/match?%61pikey={key}",
    f"/v3/parts/search?apikey={KEY}&q=a%20{{key}}%20b&{{key}}=1",
    f"/v3/parts/search?apikey={KEY}&q=a&filter[queries][]={{key}}&include[]={{key}}&show[]={{key}}&filter[{{key}}]=1",
    f"/v3/parts/{{key}}?apikey={KEY}",
    f"/v3/parts/match?apikey={KEY}&queries=[{{{{%22mpn%22:%22{{key}}%22}}}}]",
    f"/graphql?token={KEY}&query=%7B{{key}}%7D&operationName={{key}}",
)
FAULTS = ("5xx", "malformed body=html", "401", "cut", "429", "reset", "quota at=0", "5xx on=token")
COMMANDS = ("usage", "usage --json", "usage --clients --json", "status --json", "doctor", "config --all --json")


def exchange(service: running.Service, lines: str) -> str:
    """Send a request byte by byte as it is written, and return all that comes back."""
    with socket.create_connection(("127.0.0.1", int(service.url.rpartition(":")[2])), running.SECONDS) as connection:
        received = b""
        head, _, body = lines.partition("\r\n\r\n")
        try:
            connection.sendall(f"{head}\r\nHost: x\r\nConnection: close\r\n\r\n{body}".encode("latin-1"))
            while part := connection.recv(65_536):
                received += part
        except ConnectionResetError:
            pass  # it did not read the rest of a request that it refused
        return received.decode("latin-1")


def said(response: running.Response) -> str:
    return f"{response.status} {response.headers} {response.text}"


def send_all(service: running.Service, sandbox: running.Sandbox) -> Iterator[str]:
    """Send every kind of request; yields the responses."""
    yield from (said(service.get(target)) for target in TARGETS)
    yield from (exchange(service, lines) for lines in LINES)
    for number, fault in enumerate(FAULTS):
        sandbox.inject(fault)
        yield said(service.get(bills.match(f"none {number} {service.pid}", key=KEY)))
        yield said(service.get(f"/graphql?token={KEY}&query=%7BsupManufacturers%7Bname%7D%7D&n={number}"))
    sandbox.inject()
    for key, place in itertools.product((KEY, STRANGE_KEY), MISPLACED):
        encoded = quote(key, safe="")
        service.get(place.format(key=encoded))  # these may repeat what they do not understand
        service.get(place.format(key=quote(encoded, safe="")))
    yield from (said(running.request(service.operators, path)) for path in ("/readyz", "/metrics", "/status"))


def spellings(text: str) -> set[str]:
    """Return a text as clients and outputs write it: plain, encoded once and twice, escaped in JSON and in HTML."""
    once = quote(text, safe="")
    in_json = json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
    return {text, html.escape(text), once, quote(once, safe=""), *in_json}


def run_commands(service: running.Service, sandbox: running.Sandbox, temporary: Path) -> Iterator[str]:
    """Run the commands that read configuration, store, logs or responses; yields their outputs and files."""
    folder, config = service.folder, ("--config", service.file)
    url = f"http://octopart.com/api{TARGETS[0]}"
    log = folder / "access.log"
    log.write_text(f'10.0.0.1 - - [29/Nov/2026:10:00:00 +0000] "GET {TARGETS[0]} HTTP/1.1" 200 9 "-" "erp/1"\n')
    runs: list[tuple[str | Path, ...]] = [(*words.split(), *config) for words in COMMANDS]
    runs += [("explain", url, *config), ("explain", log, *config)]
    sides = ("--baseline", sandbox.ways["legacy_url"], "--candidate", f"{service.url}/v3", "--requests", log, "--yes")
    keys = ("--baseline-key", "env:OLD", "--candidate-key", "env:NEW")
    runs.append(("compare", *sides, *keys, "--html", folder / "report.html", "--json", folder / "report.json"))
    for arguments in runs:
        variables = {"OLD": sandbox.ways["legacy_apikey"], "NEW": KEY, "TMPDIR": str(temporary)}
        done = running.command(*arguments, folder=folder, **variables)
        assert "Traceback" not in done.stderr
        assert done.stdout, done.stderr
        yield f"{arguments}"[:20] + done.stdout + done.stderr
    log.unlink()


def contents(folder: Path) -> Iterator[str]:
    """Yield all files of a folder but the configuration."""
    for file in folder.rglob("*"):
        if file.is_file() and file.suffix != ".yaml":
            yield f"{file} {file.read_bytes().decode('latin-1')} {file.read_bytes().decode(errors='replace')}"


def test_planted_secrets_are_in_no_output(processes: running.Processes) -> None:
    sandbox = bills.sandbox(processes)
    refused = bills.application(sandbox, f"apikeys: [{REFUSED_KEY}]", second=True)
    refused = refused.replace(sandbox.ways["design_client_secret"], WRONG_SECRET)
    apikeys = json.dumps([KEY, STRANGE_KEY])
    text = bills.configuration(
        sandbox, demo=bills.application(sandbox, f"apikeys: {apikeys}, parts: 9000"), refused=refused
    )
    # Where workers leave what they share; short, because the name of a socket must be.
    temporary = Path(processes.enter_context(tempfile.TemporaryDirectory()))
    text = text.replace("{format: json}", "{format: json, level: debug}")
    service = processes.service(text, "--workers", "2", TMPDIR=str(temporary))
    outputs = list(send_all(service, sandbox))
    service.write(text.replace("json", "console"))
    service.restart()
    outputs += [*send_all(service, sandbox), *run_commands(service, sandbox, temporary)]
    statuses = {output[:3] for output in outputs}
    assert {"200", "400", "403", "404", "502", "503"} <= statuses
    outputs += [*contents(service.folder), *contents(temporary)]
    assert all(file.stat().st_mode & 0o077 == 0 for file in service.folder.glob("store*"))
    sandbox.kill()
    outputs += [said(service.get(bills.match("unreachable", key=key))) for key in (KEY, REFUSED_KEY)]
    service.stop()
    outputs += contents(service.folder)
    own = sandbox.ways["client_secret"], sandbox.ways["client_id"]
    planted = (KEY, WRONG_KEY, REFUSED_KEY, STRANGE_KEY, WRONG_SECRET, *own)
    words = set().union(*map(spellings, planted))
    assert [(word, output[:200]) for output in outputs for word in words if word in output] == []
