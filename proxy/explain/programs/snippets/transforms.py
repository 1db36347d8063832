"""Transforms of mapping files that read a table: a program gets those that its fields need, and what they use.

The tables stand for those of mappings/, which are written into a program. Programs have the other transforms as
proxy/mapping/transforms.py has them.
"""

import hashlib
import re

SELLER_UIDS, BRAND_UIDS, MANUFACTURER_UIDS, CATEGORY_UIDS, SOURCE_UIDS = {}, {}, {}, {}, {}
SELLER_NAMES, SOURCE_NAMES = {}, {}
SPEC_KEYS, SPEC_NAMES, SPEC_RANGES, SPECS_BESIDE, SPECS_OF_KEYS = {}, {}, {}, {}, {}
WHOLE_SPECS, LISTED_SPECS, PERCENT_SPECS = [], [], []


def ranked(pairs):
    """The second elements of pairs, sorted by the first ones."""
    return [element for _, element in sorted(pairs, key=lambda pair: pair[0])]


def uid(table, tag, id, name):
    """v3's uid of a company or category: the recorded one, else one that v3bridge computes from Nexar's id."""
    return table.get(id) or table.get(name.lower()) or f"{tag}{int(id):010x}"


def seller_uid(id, name):
    """v3's uid of a seller."""
    return uid(SELLER_UIDS, "5e11e4", id, name)


def brand_uid(id, name):
    """v3's uid of a brand."""
    return uid(BRAND_UIDS, "b4a2d0", id, name)


def manufacturer_uid(id, name):
    """v3's uid of a manufacturer."""
    return uid(MANUFACTURER_UIDS, "3a2fac", id, name)


def category_uid(id, name):
    """v3's uid of a category."""
    return uid(CATEGORY_UIDS, "ca7e60", id, name)


def category_uids(categories):
    """v3's uid of each category."""
    return [category_uid(each.id, each.name) for each in categories]


def category_line(category):
    """v3's uids from the root to the category itself."""
    return category_uids([*category.ancestors, category])


def parent_uid(ancestors):
    """v3's uid of the last ancestor; None for the root."""
    return category_uid(ancestors[-1].id, ancestors[-1].name) if ancestors else None


def seller_name(id, name):
    """v3's name of a seller, where it is recorded."""
    return SELLER_NAMES.get(id) or SELLER_NAMES.get(name, name)


def source_name(name):
    """v3's name of the source of a text or document."""
    return SOURCE_NAMES.get(name, name)


def source_uid(name):
    """v3's uid of a source: the recorded one, else a digest of the name, because Nexar has no id of it."""
    v3_name = source_name(name)
    known = SOURCE_UIDS.get(v3_name.lower()) or SOURCE_UIDS.get(name.lower())
    return known or "50c4ce" + hashlib.blake2b(v3_name.encode(), digest_size=5).hexdigest()


def spec_of(shortname, specs):
    """The spec of an attribute; None if the part has none."""
    return next((spec for spec in specs if spec.attribute.shortname == shortname), None)


def spec_key(shortname, name, specs):
    """v3's key of a spec. A general tolerance has that of the quantity which the part has beside it."""
    for quantity, key in SPECS_BESIDE.get(shortname, {}).items():
        if spec_of(quantity, specs):
            return key
    return SPEC_KEYS.get(shortname) or re.sub("[^a-z0-9]+", "_", name.lower()).strip("_") or shortname


def spec_name(shortname, name, specs):
    """v3's name of a spec: the words of its key if that depends on a quantity, such as Resistance Tolerance."""
    key = spec_key(shortname, name, specs)
    if key in SPECS_BESIDE.get(shortname, {}).values():
        return key.replace("_", " ").title()
    return SPEC_NAMES.get(shortname, name)


def spec_shown(shortname, specs):
    """Whether a part shows this spec. Where several attributes make one spec of v3, only one of them does."""
    if shortname in SPEC_RANGES:
        of_range = SPEC_RANGES[shortname]
        before = {"value": [], "low": ["value"], "high": ["value", "low"]}
        role = next(role for role in before if of_range[role] == shortname)
        return not any(spec_of(of_range[earlier], specs) for earlier in before[role])
    if shortname in SPECS_BESIDE:
        own = SPECS_OF_KEYS[spec_key(shortname, "", specs)]
        return own == shortname or spec_of(own, specs) is None
    return True


def spec_datatype(shortname, value_type):
    """v3's datatype of a spec."""
    if value_type != "number" or shortname in PERCENT_SPECS:
        return "string"
    return "integer" if shortname in WHOLE_SPECS else "decimal"


def spec_has_unit(shortname, units_name):
    """Whether v3 gave a spec a unit."""
    return bool(units_name) and shortname not in PERCENT_SPECS


def spec_values(shortname, value_type, value, si_value):
    """v3's values of a spec; none of an end of a range, or of an empty value."""
    is_end = shortname in [SPEC_RANGES.get(shortname, {}).get(end) for end in ("low", "high")]
    if is_end or not (value or si_value):
        return []
    if value_type != "number":
        return value.split(", ") if shortname in LISTED_SPECS else [value]
    return [spec_number(shortname, value, si_value)]


def spec_number(shortname, value, si_value):
    """A number as v3 wrote it, in SI base units: 22000.0, 14 for a count, ±5% for a tolerance."""
    try:
        number = float(si_value or value)
    except ValueError:
        return value
    if shortname in PERCENT_SPECS:
        return f"±{number:g}%"
    return str(int(number)) if shortname in WHOLE_SPECS and number.is_integer() else str(number)


def spec_end(end, shortname, specs):
    """One end of the range that a spec belongs to."""
    spec = spec_of(SPEC_RANGES.get(shortname, {}).get(end), specs)
    return (spec and spec_number(spec.attribute.shortname, spec.value, spec.siValue)) or None


def spec_low(shortname, specs):
    """The lower end of the range that a spec belongs to."""
    return spec_end("low", shortname, specs)


def spec_high(shortname, specs):
    """The upper end of the range that a spec belongs to."""
    return spec_end("high", shortname, specs)


def spec_display(shortname, shown, value, si_value, specs):
    """v3's text of a spec for people: both ends of a range, ±5% of a tolerance, else Nexar's."""
    if shortname in PERCENT_SPECS:
        number = spec_number(shortname, value, si_value)
        return shown if number == value else number
    of_range = SPEC_RANGES.get(shortname)
    if not of_range or shortname == of_range["value"]:
        return shown
    low, high = spec_of(of_range["low"], specs), spec_of(of_range["high"], specs)
    if low and high:
        return f"{low.displayValue} to {high.displayValue}"
    return f"{shown} ({'min' if shortname == of_range['low'] else 'max'})"
