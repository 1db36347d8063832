"""deploy/: image, containers and configuration. No container engine is needed, and none is started."""

import asyncio
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml
from support import running_proxy
from support.redis_server import RedisServer

from proxy import config, errors
from proxy.config import loader

from .conftest import ROOT, Page

DEPLOY = ROOT / "deploy"
SECRETS = {
    "NEXAR_CLIENT_ID": "an-id",
    "NEXAR_CLIENT_SECRET": "a-secret",
    "V3BRIDGE_ADMIN_TOKEN": "a-token-of-the-operators",
    "V3BRIDGE_STORE_KEY": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
}
UNSET = "sha256:replace-me"


def _instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, with their arguments."""
    lines = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if line and not line.startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in whole.splitlines())]


def _arguments(word: str) -> list[str]:
    return [rest for each, rest in _instructions() if each == word]


def _copied() -> list[tuple[list[str], str]]:
    """Sources and target of each COPY of the first stage."""
    words = [shlex.split(rest) for rest in _arguments("COPY") if not rest.startswith("--from")]
    return [(sources, target) for *sources, target in words]


@pytest.fixture
def compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_the_wheel_is_built_from_what_the_image_copies(tmp_path: Path) -> None:
    for sources, target in _copied():
        for source in sources:
            place = tmp_path / target if target.endswith("/") else tmp_path
            place.mkdir(exist_ok=True)
            name = Path(source).name
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, tmp_path / target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, place / name)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_build_context_is_what_the_image_copies() -> None:
    first, *allowed = [
        line for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if not line.startswith("#")
    ]
    assert first == "*"
    copied = {source for sources, _ in _copied() for source in sources}
    assert {line[1:] for line in allowed if line.startswith("!")} == copied


def test_the_image_runs_as_a_user_of_its_own_with_options_that_exist(pages: dict[str, Page]) -> None:
    assert len(_arguments("FROM")) == 2
    (user,) = _arguments("USER")
    assert f"--uid {user} " in " ".join(_arguments("RUN"))
    (command,) = map(yaml.safe_load, _arguments("CMD"))
    section = re.split(r"^## ", pages["docs/reference/command-line.md"].text, flags=re.MULTILINE)
    (serve,) = [text for text in section if text.startswith("v3bridge serve\n")]
    assert command[0] == "serve"
    assert all(f"`{word}`" in serve for word in command if word.startswith("--"))


@pytest.mark.parametrize("path, code", [("/healthz", 0), ("/no-such-path", 1)])
async def test_the_health_check_tells_a_running_service(path: str, code: int) -> None:
    (check,) = _arguments("HEALTHCHECK")
    _, program, text = yaml.safe_load(check.partition("CMD ")[2])
    settings = running_proxy.settings("http://127.0.0.1:9/graphql", "http://127.0.0.1:9/token")
    async with running_proxy.running(settings) as client:
        assert "http://127.0.0.1:8080/healthz" in text
        text = text.replace("http://127.0.0.1:8080/healthz", client.url + path)
        process = await asyncio.create_subprocess_exec(sys.executable, program, text, stderr=subprocess.DEVNULL)
        assert await process.wait() == code


def test_containers_have_no_right_that_they_do_not_need(compose: Any) -> None:
    for name, service in compose["services"].items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert published == {"caddy": ["80:80", "443:443"], "v3bridge": ["127.0.0.1:8088:8088"]}
    assert compose["networks"]["state"] == {"internal": True}
    assert compose["services"]["redis"]["networks"] == ["state"]


def test_mounted_files_networks_and_volumes_exist(compose: Any) -> None:
    for service in compose["services"].values():
        for source, target, *_ in (each.split(":") for each in service["volumes"]):
            assert (DEPLOY / source).is_file() if source.startswith(".") else source in compose["volumes"], target
        assert set(service["networks"]) <= compose["networks"].keys()
        for needed in service.get("depends_on", ()):
            # The image of the service has its health check in the Dockerfile.
            assert "healthcheck" in compose["services"][needed] or "build" in compose["services"][needed]
    build = compose["services"]["v3bridge"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()


def test_configuration_of_the_containers_loads_once_an_api_key_is_set(compose: Any, tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match="apikeys"):
        loader.load(DEPLOY / "config.yaml", SECRETS)
    file = tmp_path / "config.yaml"
    text = (DEPLOY / "config.yaml").read_text()
    assert UNSET in text
    file.write_text(text.replace(UNSET, f"sha256:{'0' * 64}"))
    settings = loader.load(file, SECRETS)
    assert compose["services"]["v3bridge"]["environment"].keys() == SECRETS.keys()
    assert settings.admin == config.AdminSettings("0.0.0.0", 8088, config.Secret(SECRETS["V3BRIDGE_ADMIN_TOKEN"]))
    (subnet,) = [each["subnet"] for each in compose["networks"]["front"]["ipam"]["config"]]
    assert [str(each) for each in settings.listen.trusted_proxies] == [subnet]
    assert settings.listen.stop_seconds < float(compose["services"]["v3bridge"]["stop_grace_period"].rstrip("s"))


def test_redis_accepts_its_options_and_never_evicts_the_ledger(
    needs_program: Callable[[str], str], compose: Any
) -> None:
    program, *words = shlex.split(compose["services"]["redis"]["command"])
    options = {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}
    assert options.pop("appendonly") == "yes"
    with tempfile.TemporaryDirectory(prefix="v3bridge-") as folder:  # short: a socket's path has 107 characters at most
        server = RedisServer(needs_program(program), Path(folder), options)
        server.start()
        try:
            with redis.Redis.from_url(server.url) as client:
                settings: Any = client.config_get("*")
        finally:
            server.stop()
    assert settings["maxmemory-policy"] == "noeviction"
    assert int(settings["maxmemory"]) >= 2 * config.CacheSettings().shared_bytes


def test_pods_load_their_configuration_and_probe_paths_that_exist(pages: dict[str, Page], tmp_path: Path) -> None:
    made = {each["kind"]: each for each in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())}
    file = tmp_path / "config.yaml"
    file.write_text(made["ConfigMap"]["data"]["config.yaml"].replace(UNSET, f"sha256:{'0' * 64}"))
    settings = loader.load(file, SECRETS | {"V3BRIDGE_STORE": "redis://redis:6379/0"})
    pod = made["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert isinstance(settings.admin, config.AdminSettings)
    assert ports == {"http": settings.listen.port, "admin": settings.admin.port}
    probes = [container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")]
    assert [(probe["path"], probe["port"]) for probe in probes] == [("/healthz", "http"), ("/readyz", "admin")]
    mounted = {each["mountPath"] for each in container["volumeMounts"]}
    assert {*_arguments("VOLUME"), str(Path(yaml.safe_load(_arguments("CMD")[0])[-1]).parent), "/tmp"} == mounted
    assert {each["name"] for each in pod["volumes"]} == {each["name"] for each in container["volumeMounts"]}
    assert settings.listen.stop_seconds < pod["terminationGracePeriodSeconds"]
