"""Plan of a simulation: what happens when, made from a seed. A plan with fewer events is a plan, too."""

import random
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

KEYS = {"limited": ("a", "b"), "open": ("c",), "spare": ("d",)}
LIMIT, KEY_LIMIT = 20, 12  # parts in a month of `limited`, and of its key b
NUMBERS = 30  # part numbers that clients request
FAULTS = {
    "store": ("fail", "lost", "slow"),
    "cache": ("fail", "lost", "slow", "torn"),
    "upstream": (
        *("slow", "hang", "cut", "lost", "late", "idle", "connect", "503", "429", "500", "html", "twice"),
        "exhausted",
    ),
    "identity": ("slow", "hang", "lost", "connect", "503", "429", "500", "html"),
    "disk": ("full",),
}
KINDS = {
    "request": 20.0,
    "kill": 2.0,
    "start": 1.0,
    "reload": 1.0,
    "cancel": 1.2,
    "revoke": 0.8,
    "step": 0.3,
    "suspend": 0.5,
    **dict.fromkeys(("store", "cache", "upstream", "identity"), 1.2),
    "disk": 0.3,
}
CALM = ("request", "start", "reload")
DOUBTFUL = ("kill", "cancel", "upstream", "suspend")  # what leaves usage uncertain
TOKEN_LIMITS = ((2, 200, 3_000, 40_000), (2, 3, 4, 5))
PAUSES = ((20, 600), (3_600, 80_000), (3_600, 80_000), (80_000, 600_000))  # seconds between two bursts
ANCHORS = ("2027-12-31", "2028-02-28", "2028-02-29", "2027-02-28", "2026-11-30", "2027-03-28", "2027-06-15")


class Event(NamedTuple):
    """Event, seconds after the start: its kind, the slot of the process that it happens to, and its details."""

    at: float
    kind: str
    slot: int = 0
    detail: str = ""
    number: float = 0.0

    def __str__(self) -> str:
        words = f"{self.at:12.3f} s  {self.kind} {self.detail}".rstrip()
        return f"{words} {self.number:.6g}" * bool(self.number) or words


class Plan(NamedTuple):
    """Events of a seed from `start` on, with so many processes. `has_journal`: the store is like a file, with a
    journal, else like Redis. `token_limits` are the counts of the four windows, or so few that all are reached."""

    seed: int
    start: float
    slots: int
    has_journal: bool
    token_limits: tuple[int, ...]
    events: tuple[Event, ...]

    @property
    def is_calm(self) -> bool:
        """Whether there are no faults."""
        return all(event.kind in CALM for event in self.events)

    @property
    def is_certain(self) -> bool:
        """Whether no usage may be left uncertain. A process that ends during an outage of the store leaves some."""
        kinds = {event.kind for event in self.events}
        return kinds.isdisjoint(DOUBTFUL) and not {"store", "start"} <= kinds

    def __str__(self) -> str:
        began = datetime.fromtimestamp(self.start, UTC).strftime("%Y-%m-%d %H:%M:%S")
        store = "a file" if self.has_journal else "Redis"
        lines = [
            f"seed {self.seed}: {began}, {self.slots} processes, a store like {store}, token limits {self.token_limits}"
        ]
        return "\n".join([*lines, *map(str, self.events)])


def make(seed: int) -> Plan:
    """Make the plan of a seed: some bursts of events, hours apart."""
    rng = random.Random(seed)
    day = datetime.fromisoformat(rng.choice(ANCHORS)).replace(tzinfo=UTC)
    start = (day + timedelta(hours=rng.uniform(0, 23))).timestamp()
    slots = rng.choice((1, 2, 2, 3))
    without = rng.choices(((), DOUBTFUL, [*KINDS.keys() - CALM]), (5, 3, 2))[0]
    kinds = {kind: weight for kind, weight in KINDS.items() if kind not in without}
    events: list[Event] = []
    at = 3.0
    for _ in range(rng.randint(1, 4)):
        if rng.random() < 0.3:  # over midnight
            at += 86_400 - (start + at) % 86_400 - rng.uniform(0, 4)
        for _ in range(rng.randint(3, 14)):
            at += rng.choice((0.0, rng.uniform(0, 0.1), rng.uniform(0, 3)))
            events.extend(_events(rng, at, slots, rng.choices([*kinds], [*kinds.values()])[0]))
        at += rng.uniform(*rng.choice(PAUSES))
    return Plan(seed, start, slots, rng.random() < 0.7, rng.choices(TOKEN_LIMITS, (2, 1))[0], tuple(events))


def _events(rng: random.Random, at: float, slots: int, kind: str) -> list[Event]:
    slot = rng.randrange(slots)
    if kind == "request":
        application = rng.choice(("limited", "limited", "open", "open", "spare"))
        numbers = {f"P{int(NUMBERS * rng.random() ** 2)}" for _ in range(rng.choice((1, 1, 2, 5)))}
        detail = f"{application} {rng.choice(KEYS[application])} {' '.join(sorted(numbers))}"
        return [Event(at, kind, rng.randrange(slots), detail) for _ in range(rng.choice((1, 1, 2, 4)))]
    if kind == "kill":
        return [Event(at, kind, slot, rng.choice(("", "", "torn")), rng.randint(0, rng.choice((20, 400))))]
    if kind == "start":  # a worker that takes over, of this or of the other version
        return [Event(at, kind, slot, rng.choice("112"))]
    if kind == "step":
        return [Event(at, kind, 0, "", rng.choice((-7200, -30, -0.5, 0.5, 30, 7200, 86_400, -86_400)))]
    if kind == "suspend":
        return [Event(at, kind, 0, "", rng.choice((2, 15, 60, 100_000)))]
    if kind in FAULTS:
        return [Event(at, kind, 0, rng.choice(FAULTS[kind]), round(rng.choice((0.5, 5, 20)) * rng.random(), 3))]
    if kind == "cancel":  # a client that goes while another one waits for the same part
        request = Event(at, "request", slot, f"open c P{rng.randrange(NUMBERS)}")
        return [request, request, Event(at + rng.uniform(0.001, 0.4), kind, slot, rng.choice(("oldest", "newest")))]
    return [Event(at, kind, slot)]
