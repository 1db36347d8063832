"""What a 404 says of a path that v3 does not have: the path that is meant, where there is one like it.

Costs at most a dozen comparisons of short words, however long the path is. A path of the client is never repeated.
"""

import difflib
import re
from collections.abc import Iterable

from proxy.endpoints import ENDPOINTS, PREFIXES

NO_PATH = f"there is no such path; v3's paths begin with {' or '.join(PREFIXES)}"
PREFIX = re.compile(r"(/api)?(?:/v(\d{1,2}))?(?:/rest)?(?=/|$)")  # octopart.com/api/v4/rest is a wrapper of v4's own
UID = re.compile(r"[0-9a-f]{16}")
PATH_MAX = 200  # characters that are looked at
WORD_MAX = 24  # letters of a word that are compared
ACTIONS = {each.path.rpartition("/")[2] for each in ENDPOINTS} - {"{uid}"}
LIKE = 0.75  # difflib's ratio from which two words are like each other
OTHERS = {"manufacturers": "brands", "distributors": "sellers", "suppliers": "sellers"}  # v3 has them under these names


def message(path: str) -> str:
    """The message for a path, decoded, without its query."""
    text = path[:PATH_MAX].lower()
    found = PREFIX.match(text)
    api, version = found.groups() if found else (None, None)
    words = [word[:WORD_MAX] for word in text[found.end() if found else 0 :].split("/") if word]
    paths = _meant(words)
    said = "there is no such path" if version in (None, "3") else f"v{version} is not served here, only v3"
    if not paths:
        return NO_PATH if version in (None, "3") else f"{said}; v3's paths begin with {' or '.join(PREFIXES)}"
    prefix = PREFIXES[1] if api else PREFIXES[0]
    return f"{said}; use {' or '.join(prefix + each for each in paths)}"


def instead_of_uid(path: str, uid: str) -> str | None:
    """The message for a path that ends in what is no uid but like an endpoint, such as /sellers/searches."""
    if UID.fullmatch(uid.lower()) or _like(uid[:WORD_MAX].lower(), ACTIONS) is None:
        return None
    return message(path)


def _meant(words: list[str]) -> list[str]:
    """The paths, without prefix, that are like some words; none where the first is like no object of v3."""
    if not words:
        return []
    paths = [each.path for each in ENDPOINTS if each.alias_of is None]
    objects = {path.split("/")[1] for path in paths}
    known = _like(words[0], [*objects, *OTHERS])
    if known is None:
        return []
    below = [path for path in paths if path.startswith(f"/{OTHERS.get(known, known)}/")]
    if len(words) == 1:
        return below
    action = _like(words[1], [path.rpartition("/")[2] for path in below])
    wanted = [path for path in below if path.endswith(f"/{action}") or (action is None and path.endswith("{uid}"))]
    return wanted if action or UID.fullmatch(words[1]) else below


def _like(word: str, words: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word, sorted(words), 1, LIKE)), None)
