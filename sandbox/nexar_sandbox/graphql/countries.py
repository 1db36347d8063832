"""Country codes allowed in queries (ISO 3166-1 alpha-2), and names and continents of the countries sellers ship to."""

from typing import NamedTuple

CODES = frozenset(
    """
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ
    CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR
    GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT
    JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO
    MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY
    QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO
    TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
    """.split()  # noqa: SIM905  a list of codes, not of quotes
)


class SupCountry(NamedTuple):
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


def country_of(code: str) -> SupCountry:
    """Return the country with this code; an unknown one has its code as name and no continent."""
    name, continent = _KNOWN.get(code, (code, ""))
    return SupCountry(name, code, continent)
