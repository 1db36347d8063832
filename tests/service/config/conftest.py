"""Fixtures: load a text as a configuration file, or say what is wrong with it."""

from pathlib import Path
from typing import Any

import pytest

from proxy import config, errors
from proxy.config import loader


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Load a configuration from this text, in `tmp_path`, with these environment variables."""

    def of(text: str, **environ: str) -> config.Config:
        file = tmp_path / "config.yaml"
        file.write_text(text, encoding="utf-8")
        return loader.load(file, environ)

    return of


@pytest.fixture
def mistake(load: Any) -> Any:
    """Return the message about a configuration that is refused."""

    def of(text: str, **environ: str) -> str:
        with pytest.raises(errors.ConfigError) as found:
            load(text, **environ)
        assert "hidden" not in found.value.message
        return found.value.message

    return of
