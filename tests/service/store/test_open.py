"""Tests of opening the store that the setting `store` names."""

from pathlib import Path
from typing import Any

import pytest

from proxy import config, errors
from proxy.kit.clock import ManualClock
from proxy.store import open as opening


async def open_and_close(url: str, time: ManualClock, config_file: Path, environ: Any = None) -> None:
    place = config.StoreUrl.parse(url, config_file, environ or {})
    store = await opening.open_store(place, time, worker="one", cache_bytes=10**6)
    await store.put_value("a", "", 1)
    await store.aclose()


@pytest.mark.parametrize(
    "url, state, file",
    [
        ("sqlite", None, "etc/v3bridge.sqlite"),
        ("sqlite", "state:more", "state/v3bridge.sqlite"),
        ("sqlite:{}/own", "state", "own"),
        ("memory:", "state", None),
    ],
)
async def test_store_is_in_its_place(
    tmp_path: Path, time: ManualClock, url: str, state: str | None, file: str | None
) -> None:
    for folder in ("etc", "state"):
        (tmp_path / folder).mkdir()
    environ = {"STATE_DIRECTORY": f"{tmp_path}/{state}"} if state else {}
    await open_and_close(url.format(tmp_path), time, tmp_path / "etc" / "v3bridge.yaml", environ)
    made = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert made == ([Path(file)] if file else [])


async def test_missing_folder_is_refused_and_not_made(tmp_path: Path, time: ManualClock) -> None:
    with pytest.raises(
        errors.StartError,
        match=f"^store: {tmp_path}/not mounted/store.sqlite cannot be opened: No such file .*; it needs a folder",
    ):
        await open_and_close(f"sqlite:{tmp_path}/not mounted/store.sqlite", time, tmp_path / "v3bridge.yaml")
    assert not list(tmp_path.iterdir())


async def test_folder_is_refused_by_name_and_stays_as_it_is(tmp_path: Path, time: ManualClock) -> None:
    folder = tmp_path / "state"
    folder.mkdir(0o755)
    with pytest.raises(errors.StartError, match=f"^store: {folder} is a folder or a device; name a file"):
        await open_and_close(f"sqlite:{folder}", time, tmp_path / "v3bridge.yaml")
    assert [(path.name, path.stat().st_mode & 0o777) for path in tmp_path.iterdir()] == [("state", 0o755)]
