"""What tests of judging share: the shipped mappings, settings from text, replies, and a diff as simple as can be."""

import json
from datetime import date

import msgspec
import pytest

from proxy.compare import calls, judging, loader, rules
from proxy.compare.causes import Causes
from proxy.compare.differences import Difference
from proxy.compare.replies import Reply
from proxy.kit import shipped
from proxy.mapping import loader as mapping

TODAY = date(2026, 6, 1)


def plain_diff(old, new, path="", place=""):
    """Lists by position, and no matching of anything."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            inner = (f"{path}.{key}".lstrip("."), f"{place}.{key}".lstrip("."))
            if key not in new:
                yield Difference("missing", *inner, old=old[key])
            elif key not in old:
                yield Difference("extra", *inner, new=new[key])
            else:
                yield from plain_diff(old[key], new[key], *inner)
    elif isinstance(old, list) and isinstance(new, list):
        for at in range(max(len(old), len(new))):
            inner = (f"{path}[*]", f"{place}[{at}]")
            if at >= len(new):
                yield Difference("missing", *inner, old=old[at])
            elif at >= len(old):
                yield Difference("extra", *inner, new=new[at])
            else:
                yield from plain_diff(old[at], new[at], *inner)
    elif type(old) is not type(new):
        yield Difference("type", path, place, old, new)
    elif old != new:
        yield Difference("value", path, place, old, new)


def documents(old, new):
    return list(plain_diff(old.value, new.value))


@pytest.fixture(scope="session")
def causes():
    return Causes(mapping.load(shipped.path("mappings")))


@pytest.fixture
def load(tmp_path):
    """Settings from a user's file."""

    def of(text, **environ):
        file = tmp_path / "ours.yaml"
        file.write_text(text, encoding="utf-8")
        return loader.load(file, environ)

    return of


@pytest.fixture
def rule(load):
    """The one rule of a text such as `path: mpn, ignore: all`."""

    def of(text):
        settings = load(f"shipped_rules: false\nrules: [{{reason: because, expires: never, {text}}}]")
        return settings.rules[0]

    return of


@pytest.fixture
def judge(load, causes):
    """A judge by the settings of a text; the shipped rules are out unless they are asked for."""

    def of(text="shipped_rules: false", redact=lambda text: text):
        settings = load(text)
        return judging.Judge(settings, rules.Rules(settings.rules, causes, TODAY), causes, documents, redact)

    return of


@pytest.fixture
def reply():
    def of(value, status=200, **more):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return msgspec.structs.replace(Reply(status, body, 0.1), **more)

    return of


@pytest.fixture
def call():
    return calls.Call("/parts/match", (("queries", '[{"mpn":"X1"}]'),), client="erp", times=4, origin="access.log:7")
