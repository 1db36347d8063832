"""Fixture: an explainer of the shipped configuration."""

import os

import pytest

from proxy.config import loader
from proxy.explain.explainer import Explainer
from proxy.kit import shipped


@pytest.fixture(scope="session")
def explainer() -> Explainer:
    return Explainer(loader.load(shipped.path("config.yaml"), os.environ, upstream=False))
