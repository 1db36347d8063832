"""Requests of a program in Python: `main_…` for each kind of v3 request, and what they use.

The names in capitals stand for what is written into a program.
"""

import json
import os
import re
import sys
import types
import urllib.error
import urllib.parse
import urllib.request


def main_match_batch():
    """Match several part numbers with one operation."""
    data = graphql(access_token(), QUERY, VARIABLES)
    results = [
        {
            "items": [MAP(part) for part in match.parts],
            "hits": match.hits,
            "reference": reference,
            "error": match.error,
        }
        for reference, match in zip(REFERENCES, data.supMultiMatch)
    ]
    show({"results": results})


def main_match_number():
    """Search one part number, and keep the parts that have exactly this number, as v3 did."""
    token = access_token()
    result_set = graphql(token, QUERY, VARIABLES).supSearchMpn
    results = result_set.results or []
    parts = [each.part for each in results if any(map(is_number, numbers_of(each.part, each.akaMpn)))]
    # Parts that only contain the number come last: where the page has one, it also has all that are equal to it.
    hits, shown = result_set.hits, VARIABLES["start"] + len(parts)
    if len(parts) < len(results) and (parts or VARIABLES["start"] == 0):
        hits = shown
    elif shown < hits or (hits and not parts):
        # Costs nothing, because it returns no parts.
        hits = graphql(token, COUNT_QUERY, COUNT_VARIABLES).supMultiMatch[0].hits
    result = {"items": [MAP(part) for part in parts], "hits": max(hits, shown if parts else 0)}
    show({"results": [{**result, "reference": REFERENCE, "error": None}]})


def main_match_text():
    """Search parts by words."""
    result_set = graphql(access_token(), QUERY, VARIABLES).supSearch
    items = [MAP(each.part) for each in result_set.results or []]
    show({"results": [{"items": items, "hits": result_set.hits, "reference": REFERENCE, "error": None}]})


def main_match():
    """Send each operation, and put the results in the order of the queries."""
    token = access_token()
    results = [{"items": [], "hits": 0, "reference": each["reference"], "error": each["error"]} for each in QUERIES]
    for operation in OPERATIONS:
        data = graphql(token, operation["query"], operation["variables"])
        for position, match in zip(operation["positions"], matches(data)):
            results[position].update(page_of(match, QUERIES[position]))
    show({"results": results})


def matches(data):
    """The result of each query: hits, error, and parts, each with the other number (akaMpn) that matched, if any."""
    ((name, found),) = vars(data).items()
    if name == "supMultiMatch":
        return [(match.hits, match.error, [(part, None) for part in match.parts]) for match in found]
    return [(found.hits, None, [(each.part, each.akaMpn) for each in found.results or []])]


def page_of(match, query):
    """v3's result of one query: of the parts that Nexar found, those that v3 would have."""
    hits, error, candidates = match
    parts = [part for part, aka in candidates if is_match(part, aka, query)]
    start = query["start"]
    if query["is_filtered_here"]:
        hits, parts = len(parts), parts[start : start + query["limit"]]
    elif len(parts) < len(candidates):
        hits = start + len(parts)
    return {"items": [MAP(part) for part in parts], "hits": hits, "error": error}


def is_match_any(part, aka, query):
    """Whether a part matches: what Nexar finds by words does."""
    return True


def is_match_pattern(part, aka, query):
    """Whether a part matches the query's number, in which * stands for anything."""
    return "pattern" not in query or any(
        re.fullmatch(query["pattern"], plain(number)) for number in (part.mpn, aka or "")
    )


def is_match_exactly(part, aka, query):
    """Whether a part has each number of the query to the letter, as exact_only demands."""
    numbers = numbers_of(part, aka)
    skus = [offer.sku for seller in getattr(part, "sellers", []) for offer in seller.offers]
    if "pattern" in query:
        return any(re.fullmatch(query["pattern"], number or "") for number in (part.mpn, aka))
    if query.get("mpn_or_sku") and query["mpn_or_sku"] not in (*numbers, *skus):
        return False
    return (not query.get("mpn") or query["mpn"] in numbers) and (not query.get("sku") or query["sku"] in skus)


def numbers_of(part, aka):
    """The numbers that a part matches by: its own, the one that Nexar matched, if any, and alternate ones."""
    return [part.mpn, aka or "", *part.akaMpns]


def is_number(number):
    """Whether a part number is the one that is searched, whatever its punctuation and case."""
    return plain(number) == PLAIN_NUMBER


def plain(number):
    """A part number without punctuation, in capitals."""
    return "".join(letter for letter in number if letter.isalnum()).upper()


def main_parts():
    """Get parts by uid; those that Nexar does not know are left out."""
    data = graphql(access_token(), QUERY, VARIABLES)
    parts = zip(VARIABLES["ids"], data.supParts)
    show({uid: MAP(part, uid) for uid, part in parts if part is not None})


def main_part():
    """Get one part by its uid."""
    (uid,) = VARIABLES["ids"]
    (part,) = graphql(access_token(), QUERY, VARIABLES).supParts
    if part is None:
        fail(f"there is no part with the uid {uid}")
    show(MAP(part, uid))


def main_search():
    """Search parts."""
    result_set = graphql(access_token(), QUERY, VARIABLES).supSearch
    results = [{"item": MAP(each.part), "snippet": each.description} for each in result_set.results or []]
    show({"results": results, "hits": result_set.hits})


def main_search_numbers():
    """Find parts by number, and keep those that have it to the letter: Nexar's search has no filter by number."""
    matches = graphql(access_token(), QUERY, VARIABLES).supMultiMatch
    numbers = [query["mpn"] for query in VARIABLES["queries"]]
    parts = [part for number, match in zip(numbers, matches) for part in match.parts if part.mpn == number]
    hits = len(parts) + sum(max(0, match.hits - len(match.parts)) for match in matches)
    page = parts[START : START + LIMIT]
    show({"results": [{"item": MAP(part), "snippet": part.shortDescription} for part in page], "hits": hits})


def main_list():
    """Get objects by uid from Nexar's list of all of them, which is free."""
    records = getattr(graphql(access_token(), QUERY, {}), LIST)
    show({uid: MAP(record) for uid, key in WANTED.items() for record in records if is_wanted(record, key)})


def main_list_object():
    """Get one object by uid from Nexar's list of all of them, which is free."""
    records = getattr(graphql(access_token(), QUERY, {}), LIST)
    ((uid, key),) = WANTED.items()
    objects = [MAP(record) for record in records if is_wanted(record, key)]
    if not objects:
        fail(f"nothing has the uid {uid}")
    show(objects[0])


def is_wanted(record, key):
    """Whether a record is the one that v3's uid stands for: by Nexar's id or, where that is not known, by name."""
    return key in (record.id, record.name.lower())


def main_list_search():
    """Search Nexar's list of all objects, which is free, by words of their names."""
    records = getattr(graphql(access_token(), QUERY, {}), LIST)
    if WORDS:
        by_name = sorted(records, key=lambda record: names_of(record)[0])
        ranks = [(rank_of(names_of(record)), record) for record in by_name]
        records = ranked(pair for pair in ranks if pair[0] is not None)
    page = records[START : START + LIMIT]
    show({"results": [{"item": MAP(record), "snippet": None} for record in page], "hits": len(records)})


def rank_of(names):
    """v3's order of objects: the whole name, its beginning, a word of it, another name; None if nothing matches."""
    if not all_words_begin(" ".join(names)):
        return None
    if names[0] == SEARCHED:
        return 0
    return 1 if names[0].startswith(SEARCHED) else 2 if all_words_begin(names[0]) else 3


def all_words_begin(text):
    """Whether each of the searched words is the beginning of a word of a text."""
    words = re.findall(r"\w+", text)
    return all(any(word.startswith(searched) for word in words) for searched in WORDS)


def names_of_seller(record):
    """The names of a seller in small letters, v3's first."""
    return [name.lower() for name in (seller_name(record.id, record.name), record.name, *record.aliases)]


def names_of_object(record):
    """The names of an object in small letters."""
    return [name.lower() for name in (record.name, *getattr(record, "aliases", []))]


def show(response):
    """Print a response as JSON."""
    print(json.dumps(response, indent=2, ensure_ascii=False, default=vars))


def access_token():
    """Get an access token. It is valid for a day: a program that runs longer keeps it until then."""
    if not (os.environ.get("NEXAR_CLIENT_ID") and os.environ.get("NEXAR_CLIENT_SECRET")):
        fail("set NEXAR_CLIENT_ID and NEXAR_CLIENT_SECRET to those of your Nexar application", 2)
    form = {
        "grant_type": "client_credentials",
        "client_id": os.environ["NEXAR_CLIENT_ID"],
        "client_secret": os.environ["NEXAR_CLIENT_SECRET"],
        "scope": SCOPE,
    }
    response = post(TOKEN_URL, urllib.parse.urlencode(form).encode(), {})
    return getattr(response, "access_token", None) or fail(f"{TOKEN_URL}: no access token")


def graphql(token, query, variables):
    """Send one operation, and return its data. Any error ends the program: data beside it would lack something."""
    body = json.dumps({"query": query, "variables": variables}).encode()
    response = post(GRAPHQL_URL, body, {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
    if getattr(response, "errors", None):
        fail("Nexar: " + "; ".join(error.message for error in response.errors))
    return response.data


def post(url, body, headers):
    """Send a POST request, and return the JSON of its response, with fields as attributes."""
    request = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response, object_hook=lambda fields: types.SimpleNamespace(**fields))
    except urllib.error.HTTPError as error:
        fail(f"{url}: HTTP {error.code} {error.read(500).decode(errors='replace')}")
    except (OSError, ValueError) as error:
        fail(f"{url}: {error}")


def fail(message, code=1):
    """End the program with a message."""
    print(message, file=sys.stderr)
    sys.exit(code)
