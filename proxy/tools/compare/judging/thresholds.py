"""Thresholds that fail a run: `missing-part`, `price>1%`, `latency`. Given in compare.yaml and with `--fail-on`.

A threshold is about differences that count: ignored ones and changed data are excluded before.
"""

import difflib
import re

import msgspec

from proxy.kit.wording import counted
from proxy.tools.compare.judging import paths
from proxy.tools.compare.judging.findings import CAUSES, KINDS, Cause, Kind
from proxy.v3 import endpoints

OBJECTS = ("part", "brand", "category", "seller")
SUBJECTS = (
    *OBJECTS,
    *("offer", "price", "stock", "spec", "datasheet", "description", "facet", "hits", "envelope", "other"),
)
WORDS = tuple(dict.fromkeys(word.replace(" ", "-") for word in (*KINDS, *CAUSES) if word != "moved"))
UNKNOWN_UIDS: Cause = "uid not known"

_SHARE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")


class Threshold(msgspec.Struct, frozen=True):
    """Threshold on the share of compared requests with a difference; `share` 0 permits none. `name` is one that `parse`
    accepts.
    """

    text: str
    name: str
    share: float = 0.0

    def is_about(self, endpoint: str, path: str, kind: Kind, cause: Cause) -> bool:
        """Return true if the threshold covers differences of this sort."""
        about = subject_of(endpoint, path)
        kind_, cause_ = (word.replace(" ", "-") for word in (kind, cause))
        return self.name in (about, kind_, f"{kind_}-{about}", cause_)

    @property
    def uncounted(self) -> Cause | None:
        """The cause of uncounted differences that the threshold names explicitly; None for other thresholds."""
        return UNKNOWN_UIDS if self.name == UNKNOWN_UIDS.replace(" ", "-") else None

    def broken(self, requests: int, of: int) -> str | None:
        """Return a message where too many requests have the difference; None otherwise."""
        if requests == 0 or requests <= self.share * of:
            return None
        return f"{self.text}: {requests:,} of {counted(of, 'request has', 'requests have')} it ({requests / of:.2%})"


def subject_of(endpoint: str, path: str) -> str:
    """Return the subject of a path; in responses without parts, the endpoint's object replaces `part`."""
    about = paths.subject(path)
    if about != "part":
        return about
    found = endpoints.of(endpoint)
    return found.object.lower() if found else about


def parse(text: str) -> Threshold:
    """Parse one threshold. Raises ValueError, which lists the valid names if the name is unknown."""
    name, mark, share = text.partition(">")
    name = name.strip()
    if not mark:
        return Threshold(text.strip(), _known(name))
    read = _SHARE.fullmatch(share)
    if read is None or float(read[1]) > 100:
        raise ValueError(f"{text.strip()!r} has no share such as 1% after its >, from 0% to 100%")
    return Threshold(text.strip(), _known(name), float(read[1]) / 100)


def parse_list(text: str) -> tuple[Threshold, ...]:
    """Parse a comma-separated list of thresholds."""
    return tuple(parse(each) for each in text.split(",") if each.strip())


def _known(name: str) -> str:
    kind, _, about = name.partition("-")
    if name in SUBJECTS or name in WORDS or (kind in KINDS and about in SUBJECTS):
        return name
    near = difflib.get_close_matches(name, [*SUBJECTS, *WORDS, *(f"{k}-{s}" for k in KINDS for s in SUBJECTS)], 1)
    guess = f"did you mean {near[0]}? " if near else ""
    raise ValueError(
        f"{name!r} is not the name of a threshold; {guess}There are {', '.join(SUBJECTS)}; {', '.join(WORDS)}; "
        "and a kind with one of the first after a dash, such as missing-part"
    )
