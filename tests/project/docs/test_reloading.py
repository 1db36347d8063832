"""docs/how-to/operate.md and configuration.md: what they say of reloads and of the rotation of API keys."""

import json
import re
import shlex
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from typer import testing

from proxy import config, errors
from proxy.cli import main
from proxy.config import changes, loader
from proxy.gateway import applications
from proxy.workers import control

CREDENTIALS = {"client_id": "an-id", "client_secret": "a-secret"}


def test_settings_that_need_a_restart_are_listed(pages: Any) -> None:
    page = pages["docs/reference/configuration.md"]
    listed = [name for row in page.table("setting") for name in re.findall(r"`([^`]+)`", row[0])]
    assert sorted(listed) == sorted(changes.NEEDS_RESTART)


def test_reload_is_printed_as_documented(pages: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = pages["docs/how-to/operate.md"].blocks("console", "reload")
    file = tmp_path / "config.yaml"
    content: dict[str, Any] = {"applications": {"demo": {"apikeys": ["EXAMPLE_KEY"]}}}
    file.write_text(yaml.safe_dump(content))
    running = loader.load(file, {})
    content["listen"] = {"port": 9000}
    content["applications"]["demo"] = {"apikeys": ["EXAMPLE_KEY", {"key": "new-key", "name": "erp"}], "parts": 100}
    file.write_text(yaml.safe_dump(content))
    differences = changes.changed_settings(running, loader.load(file, {}))
    waiting = tuple(name for name in differences if name in changes.NEEDS_RESTART)
    changed = tuple(name for name in differences if name not in changes.NEEDS_RESTART)
    result = config.ReloadResult("reloaded", 0.0, changed, waiting)
    monkeypatch.setattr(control, "reload_services", lambda path: {4711: result})
    monkeypatch.chdir(tmp_path)
    typed, _, shown = block.text.partition("\n")
    done = testing.CliRunner().invoke(main.program(), shlex.split(typed)[2:])
    assert (done.exit_code, done.stdout) == (0, shown)


def test_documented_rotation_serves_both_keys_until_the_old_one_expires(pages: Any, tmp_path: Any) -> None:
    page = pages["docs/how-to/operate.md"]
    (block,), (refusal,) = (page.blocks(kind, "rotation") for kind in ("yaml", "json"))
    content = yaml.safe_load(block.text)
    content["applications"]["demo"] |= CREDENTIALS
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(content))
    served = applications.Applications(loader.load(file, {}).applications)
    old, new = served.client("old-key"), served.client("new-key")
    last = datetime(2027, 1, 31, 23, 59, 59, tzinfo=UTC).timestamp()
    assert (old.refusal(last), new.refusal(last)) == (None, None)
    error = old.refusal(last + 1)
    assert isinstance(error, errors.ExpiredKey)
    assert error.status == 403
    assert json.loads(refusal.text) == {"__class__": error.v3_class, "message": error.message}
    assert new.refusal(last + 10**9) is None
