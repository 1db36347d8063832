"""Control socket: found by the configuration file, private, and never a reason to fail."""

import asyncio
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy import errors
from proxy.workers import control


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A short one: the path of a socket has 107 characters at most."""
    with tempfile.TemporaryDirectory(prefix="v3bridge-") as folder:
        yield Path(folder)


SERVICE = control.ServiceDescription("http://127.0.0.1:8080", "", "", "sqlite:/state/state.sqlite")


def describe() -> control.ServiceDescription:
    return SERVICE


def environment(folder: Path) -> dict[str, str]:
    return {"RUNTIME_DIRECTORY": str(folder / "run")}


async def asked(file: Path, environ: dict[str, str]) -> list[control.ServiceDescription]:
    return await asyncio.to_thread(control.running, file, environ)


async def test_service_is_found_by_its_file(tmp_path: Path) -> None:
    file, environ = tmp_path / "config.yaml", environment(tmp_path)
    (tmp_path / "link.yaml").symlink_to(file)
    async with control.listening(file, describe, environ):
        assert await asked(file, environ) == await asked(tmp_path / "link.yaml", environ) == [SERVICE]
        assert await asked(tmp_path / "other.yaml", environ) == []
    assert await asked(file, environ) == []
    assert list((tmp_path / "run").iterdir()) == []


async def test_service_is_found_from_an_environment_without_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tmp_path / str(os.getuid())
    session.mkdir(mode=0o700)
    monkeypatch.setattr(control, "USER_FOLDERS", tmp_path)
    file = tmp_path / "config.yaml"
    async with control.listening(file, describe, {"XDG_RUNTIME_DIR": str(session)}):
        assert await asked(file, {}) == [SERVICE]


async def test_folder_for_temporary_files_of_another_user_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, user = tmp_path / "config.yaml", os.getuid()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    async with control.listening(file, describe, {}):
        assert await asked(file, {}) == [SERVICE]
        folder = tmp_path / f"v3bridge-{user}"
        monkeypatch.setattr(os, "getuid", lambda: user + 1)
        folder.rename(tmp_path / f"v3bridge-{user + 1}")
        assert await asked(file, {}) == []


async def test_only_the_user_can_connect(tmp_path: Path) -> None:
    async with control.listening(tmp_path / "config.yaml", describe, environment(tmp_path)):
        assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700


async def test_socket_that_a_killed_service_left_is_removed(tmp_path: Path) -> None:
    file, environ = tmp_path / "config.yaml", environment(tmp_path)
    async with control.listening(file, describe, environ):
        (own,) = (tmp_path / "run").iterdir()
        left = own.with_name(own.name.replace(str(os.getpid()), "1"))
        os.link(own, left)
    assert left.exists()
    assert await asked(file, environ) == []
    assert not left.exists()


@pytest.mark.parametrize("mode", [0o755, 0o770])
async def test_service_without_a_private_folder_runs_all_the_same(tmp_path: Path, mode: int) -> None:
    file, environ = tmp_path / "config.yaml", environment(tmp_path)
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "run").chmod(mode)
    async with control.listening(file, describe, environ):
        assert await asked(file, environ) == []


async def test_path_that_is_too_long_is_no_reason_to_fail(tmp_path: Path) -> None:
    environ = {"RUNTIME_DIRECTORY": str(tmp_path / ("long" * 30))}
    async with control.listening(tmp_path / "config.yaml", describe, environ):
        pass


async def test_service_that_ends_before_it_responds_is_an_error(tmp_path: Path) -> None:
    file, environ = tmp_path / "config.yaml", environment(tmp_path)

    def die() -> control.ServiceDescription:
        raise ConnectionResetError

    async with control.listening(file, die, environ):
        with pytest.raises(errors.ConfigError, match="ended before it described itself"):
            await asked(file, environ)
