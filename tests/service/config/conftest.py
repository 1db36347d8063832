"""Fixture: loads a text as a configuration file."""

from pathlib import Path
from typing import Any

import pytest

from proxy import config
from proxy.config import loader


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Load a configuration from this text, in `tmp_path`, with these environment variables."""

    def of(text: str, **environ: str) -> config.Config:
        file = tmp_path / "config.yaml"
        file.write_text(text, encoding="utf-8")
        return loader.load(file, environ)

    return of
