"""deploy/: every unit and manifest starts the service as it is written; only paths and addresses are replaced."""

import hashlib
import importlib.metadata
import json
import re
import shlex
import shutil
import signal
import ssl
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from acceptance import running
from support import certificates

DEPLOY = running.ROOT / "deploy"
KEY = "a-key-of-the-tests"
MATCH = f"/v3/parts/match?apikey={KEY}&queries=[%7B%22mpn%22:%22SN74S74N%22%7D]"
DOCUMENT = b'{"query": "{ __typename }"}'
PUBLIC = {
    MATCH: None, f"/api{MATCH}": None, MATCH.replace("/v3/", "/api/v4/rest/").replace("apikey", "token"): None,
    "/graphql": DOCUMENT, "/graphql/": DOCUMENT, "/api/v4/endpoint": DOCUMENT, "/connect/token": b"client_secret=x",
}  # fmt: skip
NGINX = """daemon off; master_process off; pid {0}/pid; error_log {0}/errors; events {{}}
http {{ client_body_temp_path {0}/1; proxy_temp_path {0}/2; fastcgi_temp_path {0}/3; uwsgi_temp_path {0}/4;
scgi_temp_path {0}/5; {1} }}"""
Needs = Callable[[str], str]


def _docker() -> str:
    """Return the name of the program that builds and runs images here; "" where there is none."""
    programs = [name for name in ("docker", "podman") if shutil.which(name)]
    return next((name for name in programs if not subprocess.run([name, "info"], capture_output=True).returncode), "")


DOCKER = _docker()


def _text(file: str, **replaced: str) -> str:
    """Return a file of deploy/ with other texts in place of some, each of which it has."""
    text = (DEPLOY / file).read_text()
    for old, new in replaced.items():
        assert old in text, f"{old} in {file}"
        text = text.replace(old, new)
    return text


def _configuration(sandbox: running.Sandbox) -> str:
    return f"{sandbox.upstream}\napplications: {{shop: {{{sandbox.credentials}, apikeys: [{KEY}], parts: 9000}}}}\n"


def _start(processes: running.Processes, folder: Path, words: list[str], **variables: str) -> int:
    """Start a program that ends with the test, and return its process id; it writes to `log` in the folder."""
    with (folder / "log").open("ab") as log:
        env = running.environment(folder, variables)
        started = subprocess.Popen(words, cwd=folder, env=env, stdout=log, stderr=log)
    processes.callback(started.wait)
    processes.callback(started.send_signal, signal.SIGTERM)
    return started.pid


def _status(url: str, body: bytes | None = None, trust: ssl.SSLContext | None = None) -> int:
    """Return the status of a response, 0 without one."""
    kind = "application/json" if body == DOCUMENT else "application/x-www-form-urlencoded"
    sent = urllib.request.Request(url, body, {"Content-Type": kind, "token": KEY} if body else {})
    try:
        with urllib.request.urlopen(sent, context=trust, timeout=running.SECONDS) as response:
            return int(response.status)
    except OSError as error:
        return getattr(error, "code", 0)


def test_systemd_accepts_the_units(needs_program: Needs, tmp_path: Path) -> None:
    files = [file for file in DEPLOY.iterdir() if file.suffix in (".service", ".socket", ".timer")]
    for file in files:
        text = file.read_text().replace("/srv/v3bridge/.venv/bin/v3bridge", "/bin/sh")
        (tmp_path / file.name.replace("@.", "@x.")).write_text(text)
    names = sorted(file.name for file in tmp_path.iterdir())
    done = running.run([needs_program("systemd-analyze"), "verify", "--man=no", *names], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_units_start_reload_and_check_the_service(
    processes: running.Processes, sandbox: running.Sandbox, needs_program: Needs
) -> None:
    folder, port = processes.new_folder(), running.free_port()
    file, url = folder / "config.yaml", f"http://127.0.0.1:{port}"
    file.touch(0o600)
    file.write_text(f"admin: {{port: {running.free_port()}}}\n{_configuration(sandbox)}")
    short = processes.enter_context(
        tempfile.TemporaryDirectory()
    )  # for a socket, whose path has 107 characters at most
    variables = {"STATE_DIRECTORY": str(folder), "XDG_RUNTIME_DIR": short}
    replaced = {"/srv/v3bridge/.venv/bin": str(running.BIN), "/etc/v3bridge/config.yaml": str(file)}

    def lines(unit: str, setting: str, **more: str) -> list[list[str]]:
        text = _text(unit, **more)
        for old, new in replaced.items():
            text = text.replace(old, new)
        return [shlex.split(line) for line in re.findall(f"^{setting}=(.*)$", text, re.MULTILINE)]

    socket = [needs_program("systemd-socket-activate"), f"--listen=127.0.0.1:{port}"]
    (serve,) = lines("v3bridge.service", "ExecStart")
    pid = _start(processes, folder, [*socket, *(f"-E{each}={value}" for each, value in variables.items()), *serve])
    running.until(lambda: _status(url + MATCH) == 200, "the unit serves")
    file.write_text(file.read_text() + "cache: {bytes: 1000000}\n")
    for words in lines("v3bridge.service", "ExecReload", **{"$MAINPID": str(pid)}):
        assert running.run(words, folder, variables=variables).returncode == 0
    running.until(lambda: "configuration reloaded" in (folder / "log").read_text(), "the service is reloaded")
    reports = lines("v3bridge-failed@.service", "ExecStart", logger="logger --no-act --socket-errors=off")
    checks = [line for name in ("check", "schema") for line in lines(f"v3bridge-{name}.service", "ExecStart")]
    for words in (*checks, *reports):
        done = running.run(words, folder, variables=variables)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment that the steps of the Dockerfile make of a clean folder. Only packages are not downloaded: they
    are those that are installed here, which have the versions of the step."""
    folder = tmp_path_factory.mktemp("image")
    made, source = folder / "venv", folder / "src"
    source.mkdir()
    lines = _text("Dockerfile").replace("\\\n", "").split("\nFROM ")[1].splitlines()
    kept = [line[1:] for line in _text("Dockerfile.dockerignore").splitlines() if line.startswith("!")]
    for step, _, words in (line.partition(" ") for line in lines):
        if step == "COPY":
            *copied, to = words.split()
            assert {*copied} <= {*kept}  # the others are not there
            for file in (running.ROOT / each for each in copied):
                if file.is_dir():
                    shutil.copytree(file, source / to, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    (source / to).mkdir(exist_ok=True)
                    shutil.copy(file, source / to)
        elif step == "RUN":
            for command in re.split(r"\s*&&\s*", words):
                installed = re.findall(r"--require-hashes --no-deps -r (\S+)", command)
                if installed:
                    _link((source / installed[0]).read_text(), next(made.glob("lib/python*/site-packages")))
                else:
                    subprocess.run(command.replace("/venv", str(made)), shell=True, cwd=source, check=True)
    return made


def _link(requirements: str, packages: Path) -> None:
    """Have what is installed here in another folder of packages, too."""
    for name, version in re.findall(r"^(\S+)==(\S+)", requirements, re.MULTILINE):
        found = importlib.metadata.distribution(name)
        assert found.version == version
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(str(found.locate_file(top)))


@pytest.mark.parametrize("manifest", ["config.yaml", "kubernetes.yaml"])
def test_containers_start_and_are_healthy(
    processes: running.Processes, sandbox: running.Sandbox, needs_program: Needs, image: Path, manifest: str
) -> None:
    """The command line of the image with the configuration of a manifest, and the Redis of compose.yaml."""
    needs_program("redis-server")
    redis, port, admin, folder = *(running.free_port() for _ in range(3)), processes.new_folder()
    command = yaml.safe_load(_text("compose.yaml"))["services"]["redis"]["command"]
    _start(processes, processes.new_folder(), [*shlex.split(command), "--port", str(redis)])
    text = _text(manifest, **{"replace-me": hashlib.sha256(KEY.encode()).hexdigest()})
    if manifest == "kubernetes.yaml":
        (text,) = (each["data"]["config.yaml"] for each in yaml.safe_load_all(text) if each["kind"] == "ConfigMap")
    text = re.sub(r"^upstream:.*\n(  .*\n)*", f"{sandbox.upstream}\n", text, flags=re.MULTILINE)
    (folder / "config.yaml").touch(0o600)
    (folder / "config.yaml").write_text(text.replace("redis://redis:6379/0", "env:V3BRIDGE_STORE"))
    secrets = dict.fromkeys(re.findall(r"env:(V3BRIDGE_\w+)", text), "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
    secrets |= {f"NEXAR_{name.upper()}": sandbox.ways[name] for name in ("client_id", "client_secret")}
    secrets["V3BRIDGE_STORE"] = f"redis://127.0.0.1:{redis}/0"
    program, *words = [*_words("ENTRYPOINT"), *_words("CMD")]
    ports = "--port", str(port), "--admin-port", str(admin)
    words = [word.replace("/etc/v3bridge", str(folder)) for word in words]
    _start(processes, folder, [str(image / "bin" / program), *words, *ports], **secrets)
    running.until(lambda: _status(f"http://127.0.0.1:{port}{MATCH}") == 200, "the container serves")
    assert _status(f"http://127.0.0.1:{admin}/readyz") == 200
    python, *check = (word.replace(":8080", f":{port}") for word in _words("    CMD"))
    assert running.run([str(image / "bin" / python), *check], folder).returncode == 0


def _words(instruction: str) -> list[str]:
    (found,) = re.findall(rf"^{instruction} (.*)$", _text("Dockerfile"), re.MULTILINE)
    return list(json.loads(found))


@pytest.mark.skipif(not DOCKER, reason="no Docker or Podman runs here: another test has the steps of the image")
def test_image_is_built_and_healthy(processes: running.Processes, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("applications: {shop: {client_id: i, client_secret: s, apikeys: [k]}}\n")

    def docker(*words: str) -> str:
        return subprocess.run([DOCKER, *words], capture_output=True, text=True, check=True).stdout.strip()

    name = docker("build", "--quiet", "--file", str(DEPLOY / "Dockerfile"), str(running.ROOT))
    port, file = running.free_port(), f"{tmp_path}/config.yaml:/etc/v3bridge/config.yaml:ro"
    options = "--detach", "--rm", "--read-only", "--tmpfs=/tmp", f"--publish=127.0.0.1:{port}:8080", f"--volume={file}"
    processes.callback(docker, "stop", docker("run", *options, name))
    running.until(lambda: _status(f"http://127.0.0.1:{port}/healthz") == 200, "the container serves")


@pytest.mark.parametrize("name", ["nginx", "caddy"])
def test_what_stands_before_the_service_passes_public_paths_only(
    processes: running.Processes, sandbox: running.Sandbox, needs_program: Needs, name: str
) -> None:
    text = f"listen: {{sheet: true}}\n{_configuration(sandbox)}"
    service, folder, site = processes.service(text), processes.new_folder(), running.free_port()
    authority, address = certificates.CertificateAuthority(folder), service.url.removeprefix("http://")
    certificate, key = map(str, authority.issue(name))
    url, trust = f"https://127.0.0.1:{site}", ssl.create_default_context(cafile=str(authority.ca_file))
    if name == "nginx":
        paths = {"/etc/nginx/parts.pem": certificate, "/etc/nginx/parts.key": key, "/var/log/nginx": str(folder)}
        machines = {"10.0.0.11:8080": address, "10.0.0.12:8080": address, "443": f"127.0.0.1:{site}"}
        (folder / "conf").write_text(NGINX.format(folder, _text("nginx.conf", **paths, **machines)))
        program = shutil.which("nginx", path="/usr/sbin") or needs_program("nginx")
        _start(processes, folder, [program, "-p", str(folder), "-e", f"{folder}/errors", "-c", f"{folder}/conf"])
    else:
        ports = {"v3bridge:8080": address, "\tlog {": "\tadmin off\n\tauto_https disable_redirects\n\tlog {"}
        tls = {"{$SITE} {": f"{{$SITE}} {{\n\ttls {certificate} {key}"}
        (folder / "conf").write_text(_text("Caddyfile", **ports, **tls))
        words = [needs_program("caddy"), "run", "--config", "conf", "--adapter", "caddyfile"]
        _start(processes, folder, words, SITE=url)
    running.until(lambda: _status(f"{url}{MATCH}", None, trust) == 200, "requests are passed on")
    passed = {path: _status(url + path, body, trust) for path, body in PUBLIC.items()}
    assert passed == {path: _status(service.url + path, body) for path, body in PUBLIC.items()}
    assert list(passed.values()) == [200] * 6 + [400]
    assert _status(f"{url}/sheet", None, trust) == 200
    assert _status(f"{url}/sheet", b" " * 2**21, trust) == 200  # a list of 2 MiB arrives
    assert {_status(url + path, None, trust) for path in ("/", "/healthz", "/metrics", "/graphql2")} == {404}


def test_rules_and_dashboard_are_accepted(needs_program: Needs, tmp_path: Path) -> None:
    """That their metrics exist is a test of acceptance."""
    panels = json.loads(_text("grafana-dashboard.json"))["panels"]
    queries = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    recorded = [{"record": "query", "expr": query.replace("$__rate_interval", "1m")} for query in queries]
    (tmp_path / "queries.yaml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": recorded}]}))
    files = [str(DEPLOY / "prometheus-rules.yaml"), "queries.yaml"]
    done = running.run([needs_program("promtool"), "check", "rules", *files], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
