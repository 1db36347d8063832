"""docs/how-to/operate.md and configuration.md: what they say of reloads and of the rotation of API keys."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import yaml

from proxy import errors
from proxy.config import changes, loader
from proxy.gateway import applications

CREDENTIALS = {"client_id": "an-id", "client_secret": "a-secret"}


def test_settings_that_need_a_restart_are_listed(pages: Any) -> None:
    page = pages["docs/reference/configuration.md"]
    listed = [name for row in page.table("setting") for name in re.findall(r"`([^`]+)`", row[0])]
    assert sorted(listed) == sorted(changes.NEEDS_RESTART)


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
