"""Rules of matching, searching, filtering and sorting that the real service may not follow: the defaults are the
contract's."""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True)
class SearchRules:
    """Rules of one search or match; the annotation of each field describes it."""

    # Part numbers and order codes of a match (contract graphql.md §2.3)
    punctuation_ignored: Annotated[bool, "a match ignores the punctuation of part numbers"] = True
    case_ignored: Annotated[bool, "a match ignores the case of letters in part numbers"] = True
    whole_numbers_match: Annotated[bool, "a match finds whole part numbers only"] = True
    makers_share_numbers: Annotated[bool, "a match finds the parts of all makers of a number"] = True
    mpn_or_sku_takes_skus: Annotated[bool, "`mpnOrSku` may be an order code"] = True
    seller_limits_sku: Annotated[bool, "beside a seller, an order code is one of that seller's"] = True
    # Manufacturers of a match
    aliases_known: Annotated[bool, "other names of a manufacturer are known, such as MPD"] = True
    company_case_ignored: Annotated[bool, "a name of a manufacturer may be in another case"] = True
    further_words_allowed: Annotated[bool, "a name may have further words: Vishay Lite-On is Lite-On"] = True
    unknown_makers_match_nothing: Annotated[bool, "a match with an unknown manufacturer finds nothing"] = True
    # Searches
    numbers_found_by_piece: Annotated[bool, "supSearchMpn finds numbers by a piece of them"] = True
    equal_numbers_first: Annotated[bool, "supSearchMpn lists equal numbers first"] = True
    equal_numbers_first_in_text: Annotated[bool, "supSearch lists equal numbers first, else last"] = True
    every_word_needed: Annotated[bool, "supSearch finds parts that have every word of the query"] = True
    last_word_is_prefix: Annotated[bool, "the last word of a query may be the beginning of a word"] = True
    empty_query_finds_all: Annotated[bool, "a search without words finds all that passes the filters"] = True
    # Filters (§2.4)
    names_filter_makers: Annotated[bool, "manufacturer_id takes names"] = True
    names_filter_sellers: Annotated[bool, "distributor_id takes names"] = True
    values_are_alternatives: Annotated[bool, "one of the values of a key is enough"] = True
    keys_are_combined: Annotated[bool, "all keys must fit"] = True
    ranges_include_ends: Annotated[bool, "the ends of a range belong to it"] = True
    ranges_may_be_open: Annotated[bool, "a range needs one end only"] = True
    exponents_in_ranges: Annotated[bool, "an end of a range may be written as 1e-07"] = True
    plain_numbers_filter: Annotated[bool, "a value may be a bare number in SI base units"] = True
    displayed_values_filter: Annotated[bool, "a value may be written as it is displayed, such as 1 kΩ"] = True
    categories_include_descendants: Annotated[bool, "category_id includes the categories below"] = True
    unknown_filters_refused: Annotated[bool, "an unknown key of a filter is an error"] = True
    # Sorting
    sort_keys_missing: Annotated[frozenset[str], "sort keys that are not accepted"] = frozenset()
    unknown_sorts_refused: Annotated[bool, "an unknown sort key is an error"] = True
    descending_sorts: Annotated[bool, "`sortDir: desc` is obeyed"] = True


CONTRACT = SearchRules()
