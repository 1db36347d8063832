"""Reading of the assumption files. That they fit together is tested, because they are part of the program."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from proxy import errors
from proxy.kit import located_yaml
from proxy.tools.conform.assumptions import Assumption, AssumptionFile, ProbeRequest

FILES = ("transport.yaml", "supply.yaml")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All probe requests by name and all assumptions, each in the order of the files."""

    requests: dict[str, ProbeRequest] = field(default_factory=dict)
    assumptions: tuple[Assumption, ...] = ()

    def only(self, ids: Iterable[str]) -> "Catalogue":
        """Return the assumptions with these ids, and the requests that they observe. Raises KeyError for an unknown
        id."""
        unknown = set(ids) - {assumption.id for assumption in self.assumptions}
        if unknown:
            raise KeyError(min(unknown))
        chosen = tuple(assumption for assumption in self.assumptions if assumption.id in set(ids))
        observed = {name for assumption in chosen for name in assumption.requests}
        requests = {name: request for name, request in self.requests.items() if name in observed}
        return Catalogue(requests, chosen)


def load(folder: Path = Path(__file__).parent, files: Iterable[str] = FILES) -> Catalogue:
    """Read all files. Raises ConfigError that names file and line."""
    read = [
        located_yaml.load(folder / name, errors.ConfigError).convert(AssumptionFile, errors.ConfigError)
        for name in files
    ]
    requests = {name: request for each in read for name, request in each.requests.items()}
    return Catalogue(requests, tuple(assumption for each in read for assumption in each.assumptions))
