"""Changes of API keys in the text of a configuration: what is written, and that all else stays byte for byte."""

from collections.abc import Callable
from datetime import date
from pathlib import Path

import msgspec
import pytest

from proxy import config, errors
from proxy.config import key_changes, own_file
from proxy.config.key_changes import KeyChange
from proxy.kit import shipped

DAY = date(2027, 1, 31)
NEW = config.ApiKeySettings(config.digest("new"), name="bom", parts=100, expires=DAY)
SHA = "sha256:11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437"
MANY = """\
# Ours. Keep this comment.
listen: {port: 0}   # any
applications:
  shop:  # the shop's
    # keys of programs
    apikeys:
      - "k1"  # ERP, since 2019
      - key: 'k2'   # a block
        name: plm

        parts: 7  # a month
      # between two
      - {key: k3, name: "its", expires: 2026-01-01}  # flow
      - name: old
        expires:    null  # not yet
        key: k4  # the last

    # about the plan
    plan: pro
  trial:
    apikeys: [ k5 , {key: "k6", name: six}, # in brackets
              "k7"  # without a name
    ]
store: "memory:"
"""


def ends(application: str, name: str) -> Callable[[config.Config], KeyChange]:
    return lambda settings: key_changes.ending(settings, application, name, DAY)


def adds(application: str) -> Callable[[config.Config], KeyChange]:
    return lambda settings: key_changes.adding(settings, application, NEW)


def rotates(settings: config.Config) -> KeyChange:
    return key_changes.rotating(settings, "shop", "plm", digest=config.digest("new"), new_name="", last_day=DAY)


def changed(file: Path, change: Callable[[config.Config], KeyChange]) -> str:
    """Write a change to a file, and return its text as it is in bytes."""
    settings = own_file.load(file, {})
    wanted = change(settings)
    own_file.write(file, wanted, settings, {})
    assert own_file.load(file, {}) == wanted.applied(settings)
    return file.read_bytes().decode()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "own.yaml"
    path.write_bytes(MANY.encode())
    return path


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "change, before, after",
    [
        (ends("shop", "1"), '- "k1"  # ERP', '- {key: "k1", expires: 2027-01-31}  # ERP'),
        (ends("shop", "plm"), "parts: 7  # a month\n", "parts: 7  # a month\n        expires: 2027-01-31\n"),
        (ends("shop", "its"), "expires: 2026-01-01}", "expires: 2027-01-31}"),
        (ends("shop", "old"), "expires:    null  #", "expires:    2027-01-31  #"),
        (ends("trial", "1"), "[ k5 ,", '[ {key: "k5", expires: 2027-01-31} ,'),
        (ends("trial", "six"), "name: six}", "name: six, expires: 2027-01-31}"),
        (ends("trial", "3"), '"k7"  #', '{key: "k7", expires: 2027-01-31}  #'),
        (
            adds("shop"),
            "key: k4  # the last\n",
            f'key: k4  # the last\n      - key: "{SHA}"\n        name: bom\n        parts: 100\n'
            "        expires: 2027-01-31\n",
        ),
        (
            adds("trial"),
            '"k7"  #',
            f'"k7", {{key: "{SHA}", name: bom, parts: 100, expires: 2027-01-31}}  #',
        ),
    ],
)
def test_only_what_changes_is_written(
    file: Path, line_end: str, change: Callable[[config.Config], KeyChange], before: str, after: str
) -> None:
    text = MANY.replace("its", "its") if False else MANY
    file.write_bytes(text.replace("\n", line_end).encode())
    assert MANY.count(before) == 1
    assert changed(file, change) == MANY.replace(before, after).replace("\n", line_end)


def test_rotated_key_has_the_limits_of_the_old_one_which_ends(file: Path) -> None:
    text = changed(file, rotates)
    assert text == MANY.replace("parts: 7  # a month\n", "parts: 7  # a month\n        expires: 2027-01-31\n").replace(
        "key: k4  # the last\n", f'key: k4  # the last\n      - key: "{SHA}"\n        name: plm-2\n        parts: 7\n'
    )
    later = own_file.load(file, {})
    again = key_changes.rotating(
        later, "shop", "plm-2", digest=config.digest("newer"), new_name="", last_day=date(2028, 1, 1)
    )
    own_file.write(file, again, later, {})
    keys = own_file.load(file, {}).applications["shop"].clients
    assert [(name, key.expires) for name, key in list(keys.items())[-2:]] == [
        ("plm-2", date(2028, 1, 1)),
        ("plm-3", None),
    ]
    # The end of a key that has one is not put off.
    assert key_changes.rotating(
        later, "shop", "plm", digest=config.digest("x"), new_name="x", last_day=date(2030, 1, 1)
    ).ended == ("plm", DAY)


def test_rotated_key_has_the_share_of_the_old_one(file: Path) -> None:
    file.write_text(
        "applications:\n  shop:\n    parts: 90\n    apikeys:\n    - {key: k2, name: plm, parts: 30%, leaves: 5}\n"
    )
    settings = own_file.load(file, {})
    change = rotates(settings)
    assert change.note.startswith("Each of both keys may use 30% of the application's parts in this period;")
    own_file.write(file, change, settings, {})
    keys = own_file.load(file, {}).applications["shop"].clients
    assert [(key.share, key.leaves) for key in keys.values()] == [(30, 5), (30, 5)]


def test_every_setting_of_a_key_is_copied(file: Path) -> None:
    whole = "{key: k2, name: plm, rate: 0, refresh: true, exhausted_status: 429, sunset: {date: 2027-06-30}}"
    file.write_text(f"applications:\n  shop:\n    apikeys:\n    - {whole}")  # no indentation, and no end of line
    assert changed(file, rotates).splitlines()[4:] == [
        f'    - key: "{SHA}"',
        "      name: plm-2",
        "      rate: 0",
        "      sunset: {date: 2027-06-30}",
        "      refresh: true",
        "      exhausted_status: 429",
    ]


@pytest.mark.parametrize("name, written", [("yes", "yes"), ("9", '"9"'), ("1.5", '"1.5"'), ("null", '"null"')])
def test_names_that_yaml_reads_as_something_else_are_quoted(file: Path, name: str, written: str) -> None:
    own = msgspec.structs.replace(NEW, name=name)
    assert f"name: {written}\n" in changed(file, lambda settings: key_changes.adding(settings, "shop", own))


@pytest.mark.parametrize(
    "make, reason",
    [
        (lambda file: file.rename(file.parent / "data") and file.symlink_to("data"), "symbolic link"),
        (lambda file: file.chmod(0o444), "read-only"),
        (lambda file: file.write_text(f"\n# Ansible managed\n{MANY}"), "“Ansible managed”"),
        (lambda file: file.write_text(f"# Team Parts\n# DO NOT EDIT: see the chart\n{MANY}"), "“DO NOT EDIT”"),
        (lambda file: file.write_text(f"# Managed elsewhere.\n{MANY}"), "“Managed elsewhere”"),
        (lambda file: file.write_text(f"{MANY}# managed by nobody: not at the top\n"), None),
    ],
)
def test_file_that_is_managed_elsewhere_is_never_written(
    file: Path, make: Callable[[Path], object], reason: str | None
) -> None:
    make(file)
    before, settings = file.read_bytes(), own_file.load(file, {})
    if reason is None:
        own_file.write(file, rotates(settings), settings, {})
        assert file.read_bytes() != before
        return
    with pytest.raises(own_file.ManagedElsewhere, match=reason) as refused:
        own_file.write(file, rotates(settings), settings, {})
    assert refused.value.lines == (
        f'# below applications.shop.apikeys:\n      - key: "{SHA}"\n        name: plm-2\n        parts: 7\n'
        "# in applications.shop.apikeys[1], the key plm:\n        expires: 2027-01-31"
    )
    assert (file.read_bytes(), sorted(each.name for each in file.parent.iterdir())[-1]) == (before, "own.yaml")


def test_shipped_example_is_never_written() -> None:
    example = shipped.path("config.yaml")
    settings = own_file.load(example, {})
    with pytest.raises(own_file.ManagedElsewhere, match="v3bridge init"):
        own_file.write(example, key_changes.adding(settings, "demo", NEW), settings, {})


def test_list_that_is_merged_from_elsewhere_is_left_to_its_author(file: Path) -> None:
    file.write_text(text := "applications:\n  shop:\n    <<: {apikeys: [a]}\n    plan: pro\n")
    settings = own_file.load(file, {})
    with pytest.raises(own_file.ManagedElsewhere, match="no list `apikeys` of its own"):
        own_file.write(file, key_changes.adding(settings, "shop", NEW), settings, {})
    assert file.read_text() == text


def test_value_that_another_refers_to_is_left_to_its_author(file: Path) -> None:
    file.write_text(
        text := "applications:\n  shop: {apikeys: [{key: a, expires: &day 2026-01-01}]}\n"
        "  other: {apikeys: [{key: b, expires: *day}]}\n"
    )
    settings = own_file.load(file, {})
    with pytest.raises(own_file.ManagedElsewhere, match=r"own.yaml:3:\d+: found undefined alias"):
        own_file.write(file, ends("shop", "1")(settings), settings, {})
    assert file.read_text() == text


def test_mode_is_kept_and_nothing_is_left_behind(file: Path) -> None:
    file.chmod(0o640)
    changed(file, rotates)
    assert (file.stat().st_mode & 0o777, [each.name for each in file.parent.iterdir()]) == (0o640, ["own.yaml"])


def test_file_that_was_changed_meanwhile_is_not_written(file: Path) -> None:
    settings = own_file.load(file, {})
    file.write_text(MANY.replace("parts: 7", "parts: 8"))
    with pytest.raises(errors.ConfigError, match="changed meanwhile"):
        own_file.write(file, rotates(settings), settings, {})
    assert "parts: 8" in file.read_text()


@pytest.mark.parametrize(
    "change, message",
    [
        (adds("nobody"), "no application 'nobody'; the configuration has shop, trial"),
        (ends("shop", "x"), "shop has no API key 'x'; it has 1, plm, its, old"),
        (
            lambda settings: key_changes.adding(settings, "shop", msgspec.structs.replace(NEW, name="plm")),
            "an API key 'plm' already",
        ),
        (
            lambda settings: key_changes.adding(
                settings, "trial", msgspec.structs.replace(NEW, key=config.digest("k2"))
            ),
            "is that of shop/plm already",
        ),
        (
            lambda settings: key_changes.adding(settings, "trial", msgspec.structs.replace(NEW, name="a b")),
            "'a b' is not a name",
        ),
    ],
)
def test_changes_that_cannot_be_are_refused(
    file: Path, change: Callable[[config.Config], KeyChange], message: str
) -> None:
    with pytest.raises(errors.BadRequest, match=message):
        change(own_file.load(file, {}))
