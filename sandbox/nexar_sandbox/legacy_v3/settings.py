"""Settings of the legacy v3 service. Defaults follow the contract."""

from dataclasses import dataclass

from nexar_sandbox.legacy_v3 import disturbances as disturbances_of

# The default API key: that of the shipped configuration.
DEFAULT_APIKEY = "EXAMPLE_KEY"


@dataclass(frozen=True, slots=True)
class LegacySettings:
    """`requests_per_second`: rate limit per API key; None: no limit. `country` and `currency` are those assumed for all
    clients. `disturbances` are active from the start."""

    apikeys: tuple[str, ...] = (DEFAULT_APIKEY,)
    requests_per_second: int | None = 3
    country: str = "US"
    currency: str = "USD"
    disturbances: tuple[disturbances_of.Disturbance, ...] = ()

    def __post_init__(self) -> None:
        if not self.apikeys or not all(self.apikeys) or len(set(self.apikeys)) != len(self.apikeys):
            raise ValueError("API keys of the old service must be some, not empty and each there once")
        if self.requests_per_second is not None and self.requests_per_second < 1:
            raise ValueError(f"requests_per_second must be 1 or more, or None, not {self.requests_per_second}")

    def __repr__(self) -> str:
        return f"LegacySettings({len(self.apikeys)} apikeys, requests_per_second={self.requests_per_second})"
