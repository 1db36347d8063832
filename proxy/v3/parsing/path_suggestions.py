"""Message of a 404: suggests the v3 path that is most similar to the requested one.

Costs at most a dozen comparisons of short words, however long the path is. Never repeats the requested path, which may
hold an API key.
"""

import difflib
import re
from collections.abc import Iterable

from proxy.v3.endpoints import ENDPOINTS, PREFIXES

NO_SUCH_PATH = "there is no such path"
V4_PATHS = "POST /api/v4/endpoint (GraphQL) and GET /api/v4/rest/parts/match"
REASONS = {None: NO_SUCH_PATH, "3": NO_SUCH_PATH, "4": f"{NO_SUCH_PATH}; v4's paths are {V4_PATHS}"}  # by version
V3_PREFIXES = f"v3's paths begin with {' or '.join(PREFIXES)}"
PREFIX = re.compile(r"(/api)?(?:/v(\d{1,2}))?(?:/rest)?(?=/|$)")  # octopart.com/api/v4/rest was an API of its own
UID = re.compile(r"[0-9a-f]{16}")
PATH_MAX = 200  # characters that are compared
WORD_MAX = 24  # letters of a word that are compared
SIMILARITY_MIN = 0.75  # difflib's ratio
PATHS = [each.path for each in ENDPOINTS if each.alias_of is None]
SYNONYMS = {"manufacturers": "brands", "distributors": "sellers", "suppliers": "sellers"}
OBJECTS = [*{path.split("/")[1] for path in PATHS}, *SYNONYMS]
ACTIONS = {path.rpartition("/")[2] for path in PATHS} - {"{uid}"}


def message(path: str) -> str:
    """Return the message for a path, which is decoded and has no query."""
    text = path[:PATH_MAX].lower()
    prefix = PREFIX.match(text)
    api, version = prefix.groups() if prefix else (None, None)
    words = [word[:WORD_MAX] for word in text[prefix.end() if prefix else 0 :].split("/") if word]
    reason = REASONS.get(version, f"v{version} is not served here, only v3 and v4")
    if paths := _similar_paths(words):
        return f"{reason}; use {' or '.join(PREFIXES[api is not None] + each for each in paths)}"
    return f"{reason}; {V3_PREFIXES}"


def instead_of_uid(path: str, uid: str) -> str | None:
    """Return the message for a path whose uid looks like an action, such as /sellers/searches; None if it does not."""
    if UID.fullmatch(uid.lower()) or _closest(uid[:WORD_MAX].lower(), ACTIONS) is None:
        return None
    return message(path)


def _similar_paths(words: list[str]) -> list[str]:
    """Return the paths that are similar to some words; none if the first is not similar to an object of v3."""
    name = _closest(words[0], OBJECTS) if words else None
    if name is None:
        return []
    below = [path for path in PATHS if path.startswith(f"/{SYNONYMS.get(name, name)}/")]
    action = _closest(words[1], [path.rpartition("/")[2] for path in below]) if len(words) > 1 else None
    # A uid behind an object is right where it is; other words are a misspelt action.
    if action is None and len(words) > 1 and UID.fullmatch(words[1]):
        action = "{uid}"
    return [path for path in below if path.endswith(f"/{action}")] if action else below


def _closest(word: str, words: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word, sorted(words), 1, SIMILARITY_MIN)), None)
