"""Country codes allowed in queries (ISO 3166-1 alpha-2), and names and continents of the countries sellers ship to."""

import tomllib
from pathlib import Path

_COUNTRIES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
CODES = frozenset(_COUNTRIES["codes"].split())


def country_of(code: str) -> dict[str, str]:
    """Return the country with this code; an unknown one has its code as name and no continent."""
    name, continent = _COUNTRIES["known"].get(code, (code, ""))
    return {"name": name, "countryCode": code, "continentCode": continent}
