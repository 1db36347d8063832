"""Names and continents of the countries that sellers ship to (ISO 3166-1 alpha-2), as SupCountry has them."""

from typing import NamedTuple


class Country(NamedTuple):
    """A country; the continent has two letters (EU, AS, NA, SA, AF, OC)."""

    name: str
    country_code: str
    continent_code: str


_KNOWN = {
    "AT": ("Austria", "EU"),
    "AU": ("Australia", "OC"),
    "BE": ("Belgium", "EU"),
    "BR": ("Brazil", "SA"),
    "CA": ("Canada", "NA"),
    "CH": ("Switzerland", "EU"),
    "CN": ("China", "AS"),
    "CZ": ("Czechia", "EU"),
    "DE": ("Germany", "EU"),
    "DK": ("Denmark", "EU"),
    "EE": ("Estonia", "EU"),
    "ES": ("Spain", "EU"),
    "FI": ("Finland", "EU"),
    "FR": ("France", "EU"),
    "GB": ("United Kingdom", "EU"),
    "HK": ("Hong Kong", "AS"),
    "HU": ("Hungary", "EU"),
    "IE": ("Ireland", "EU"),
    "IL": ("Israel", "AS"),
    "IN": ("India", "AS"),
    "IT": ("Italy", "EU"),
    "JP": ("Japan", "AS"),
    "KR": ("South Korea", "AS"),
    "LI": ("Liechtenstein", "EU"),
    "MX": ("Mexico", "NA"),
    "MY": ("Malaysia", "AS"),
    "NL": ("Netherlands", "EU"),
    "NO": ("Norway", "EU"),
    "NZ": ("New Zealand", "OC"),
    "PL": ("Poland", "EU"),
    "RU": ("Russia", "EU"),
    "SE": ("Sweden", "EU"),
    "SG": ("Singapore", "AS"),
    "TH": ("Thailand", "AS"),
    "TR": ("Turkey", "AS"),
    "TW": ("Taiwan", "AS"),
    "US": ("United States", "NA"),
    "ZA": ("South Africa", "AF"),
}


def country(code: str) -> Country:
    """The country with this code; one that is not known has its code for a name and no continent."""
    name, continent = _KNOWN.get(code, (code, ""))
    return Country(name, code, continent)
