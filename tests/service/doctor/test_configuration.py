"""Tests of the stage configuration: each mistake is one diagnosis, and all of them are found at once."""

import importlib
import re
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from support import cases

from proxy import config
from proxy.config import blocks, mistakes, secret
from proxy.config import loader as config_loader
from proxy.doctor import configuration
from proxy.doctor.findings import DIAGNOSES
from proxy.doctor.inspection import Inspection
from proxy.kit import clock

from .conftest import Examine, diagnoses, start_nothing

SANDBOX = "applications:\n  demo:\n    apikeys: [a-key]\n"
REAL = """\
upstream: {{graphql_url: "http://127.0.0.1:1/g", token_url: "http://127.0.0.1:1/t"{upstream}}}
{top}
applications:
  demo: {{apikeys: [a-key], client_id: an-id, client_secret: "hidden"{application}}}
"""


def real(upstream: str = "", top: str = "", application: str = "") -> str:
    return REAL.format(upstream=upstream, top=top, application=application)


@cases.parametrize("text, code")
async def test_each_mistake_is_one_diagnosis(examine: Examine, tmp_path: Path, text: str, code: str) -> None:
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "uids.yaml").write_text("Seller: [{uid: hidden, name: A}]\n")
    (tmp_path / "rules.yaml").write_text("rulez: []\n")
    findings = await examine(configuration.check, text.replace("SANDBOX", SANDBOX), EMPTY=" ")
    assert diagnoses(findings) == [code]
    assert len(findings) == 1
    assert findings[0].advice
    if code not in ("uids_invalid", "tls_file_invalid"):  # a uid is no secret; OpenSSL names no line
        assert re.match(r"(config|rules)\.yaml:", findings[0].text)
    assert "hidden" not in findings[0].text or code == "uids_invalid"


async def test_all_mistakes_are_found_at_once(examine: Examine) -> None:
    text = SANDBOX + "listen: {port: 70000, prt: 1}\nlog: {level: loud}\nstore: env:NO\n"
    findings = await examine(configuration.check, text)
    assert diagnoses(findings) == ["value_not_accepted", "unknown_key", "value_not_accepted", "variable_missing"]


@pytest.mark.parametrize("content, code", [(None, "configuration_unreadable"), (b"\xff\xfe", "configuration_not_text")])
async def test_a_file_that_cannot_be_read_has_a_diagnosis_of_its_own(
    tmp_path: Path, content: bytes | None, code: str
) -> None:
    file = tmp_path / "config.yaml"
    if content:
        file.write_bytes(content)
    async with AsyncExitStack() as resources:
        inspection = Inspection(file, {}, clock.SystemClock(), start_nothing, resources)
        findings = [finding async for finding in configuration.check(inspection)]
    assert diagnoses(findings) == [code]
    assert inspection.configured is None


@pytest.mark.parametrize(
    "top, missing, extra",
    [
        ("store: redis://me:hidden@127.0.0.1", "redis", "redis"),
    ],
)
async def test_a_setting_that_needs_an_optional_package_names_its_extra(
    examine: Examine, monkeypatch: pytest.MonkeyPatch, top: str, missing: str, extra: str
) -> None:
    def refuse(name: str) -> Any:
        raise ModuleNotFoundError(name=name)

    assert diagnoses(await examine(configuration.check, real(top=top))) == []
    monkeypatch.setattr(importlib, "import_module", refuse)
    (finding,) = await examine(configuration.check, real(top=top))
    assert finding.code == "package_missing"
    assert f"pip install '.[{extra}]'" in finding.advice
    assert missing in finding.text
    assert "hidden" not in str(finding)


async def test_the_sandbox_without_its_packages_is_named(tmp_path: Path) -> None:
    async def refuse(*_: Any) -> config.Config:
        raise ModuleNotFoundError(name="graphql")

    file = tmp_path / "config.yaml"
    file.write_text(SANDBOX)
    async with AsyncExitStack() as resources:
        inspection = Inspection(file, {}, clock.SystemClock(), refuse, resources)
        findings = [finding async for finding in configuration.check(inspection)]
    assert diagnoses(findings) == ["package_missing"]
    assert inspection.configured is None


async def test_a_right_configuration_is_counted(examine: Examine) -> None:
    first, second = await examine(configuration.check, SANDBOX)
    assert first.text.endswith("config.yaml: 1 application, 1 API key")
    assert second.code == "sandbox_started"


def test_every_code_of_the_loader_has_a_diagnosis() -> None:
    modules: tuple[Any, ...] = (blocks, config_loader, mistakes, secret)
    source = "".join(Path(module.__file__).read_text() for module in modules)
    kinds = "renamed|removed|unknown|setting|value|variable|file"
    assert set(re.findall(rf'"((?:{kinds})_[a-z_]+)"', source)) <= DIAGNOSES["configuration"].keys()
