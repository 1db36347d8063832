# Responses of v3 from the data of GraphQL operations, in jq.

# Several part numbers: {"data": of the operation}.
def response_match_batch:
  [.supMultiMatch, REFERENCES] | transpose
  | {results: map(.[1] as $reference | .[0] | {
      items: [.parts[] | MAP(.)], hits, reference: $reference, error})};

# Parts with exactly the number that was searched, as v3 had them; $count is the number of all, where it was needed.
def response_match_number($count):
  .supSearchMpn as $result_set
  | number_matches as $parts
  | (START + ($parts | length)) as $shown
  | (if $count then $count elif are_all_here then $shown else $result_set.hits end) as $hits
  | {results: [{
      items: [$parts[] | MAP(.)],
      hits: ([$hits, if $parts == [] then 0 else $shown end] | max),
      reference: REFERENCE,
      error: null}]};

# Whether the number of matches is open: no part on the page only contains the number, and there are more pages.
def needs_count:
  number_matches as $parts
  | (START + ($parts | length)) as $shown
  | (are_all_here | not) and ($shown < .supSearchMpn.hits or (.supSearchMpn.hits > 0 and $parts == []));

# Parts that only contain the number come last: where the page has one, it also has all that are equal to it.
def are_all_here:
  number_matches as $parts
  | ($parts | length) < (.supSearchMpn.results // [] | length) and ($parts != [] or START == 0);

# The parts that have exactly the number, whatever its punctuation and case.
def number_matches:
  def is_number: plain(. // "") == PLAIN_NUMBER;
  [.supSearchMpn.results // [] | .[] | select((.part.mpn | is_number) or (.akaMpn | is_number)) | .part];

# A part number without punctuation, in capitals.
def plain($number):
  $number | gsub("[^\\p{L}\\p{N}]"; "") | ascii_upcase;

# Parts that were searched by words.
def response_match_text:
  .supSearch
  | {results: [{items: [.results // [] | .[].part | MAP(.)], hits, reference: REFERENCE, error: null}]};

# The results of several operations, in the order of the queries. Input: the data of each operation.
def response_match:
  [[., POSITIONS] | transpose[] | .[1] as $positions | .[0] | matches | [$positions, .] | transpose[]] as $pairs
  | {results: [QUERIES | to_entries[] | .key as $position | .value as $query
      | {items: [], hits: 0, reference: $query.reference, error: $query.error}
        + ((first($pairs[] | select(.[0] == $position)) | .[1] | page_of($query)) // {})]};

# The result of each query: hits, error, and each part with the other number (akaMpn) that matched, if any.
def matches:
  if .supMultiMatch then .supMultiMatch | map({hits, error, candidates: (.parts | map({part: ., akaMpn: null}))})
  else [.[] | {hits, error: null, candidates: (.results // [])}] end;

# v3's result of one query: of the parts that Nexar found, those that v3 would have.
def page_of($query):
  [.candidates[] | select(is_match(.part; .akaMpn; $query)) | .part] as $parts
  | (if $query.is_filtered_here then {hits: ($parts | length), page: $parts[$query.start:$query.start + $query.limit]}
    elif ($parts | length) < (.candidates | length) then {hits: ($query.start + ($parts | length)), page: $parts}
    else {hits, page: $parts} end) as $page
  | {items: [$page.page[] | MAP(.)], hits: $page.hits, error};

# Whether a part matches: what Nexar finds by words does.
def is_match_any($part; $aka; $query):
  true;

# Whether a part matches the query's number, in which * stands for anything.
def is_match_pattern($part; $aka; $query):
  ($query.pattern // ".*") as $pattern
  | any($part.mpn, $aka // ""; plain(.) | test("^(?:\($pattern))$"));

# Whether a part has each number of the query to the letter, as exact_only demands.
def is_match_exactly($part; $aka; $query):
  [$part.mpn, $aka // ""] as $numbers
  | [$part.sellers_includeBrokerstrue // [] | .[].offers[].sku] as $skus
  | if $query.pattern then any($numbers[]; test("^(?:\($query.pattern))$"))
    else
      ($query.mpn_or_sku // $part.mpn | IN($numbers[], $skus[]))
      and ($query.mpn // $part.mpn | IN($numbers[]))
      and ($query.sku == null or ($query.sku | IN($skus[])))
    end;

# Parts by uid; those that Nexar does not know are left out.
def response_parts:
  [[IDS, .supParts] | transpose[] | select(.[1] != null) | .[0] as $uid | .[1] | {key: $uid, value: MAP(.; $uid)}]
  | from_entries;

# One part by its uid.
def response_part:
  .supParts[0] as $part
  | if $part then MAP($part; IDS[0]) else "there is no part with the uid \(IDS[0])\n" | halt_error(1) end;

# A page of a search.
def response_search:
  .supSearch
  | {results: [.results // [] | .[] | {item: MAP(.part), snippet: .description}], hits};

# Parts that have a number to the letter: Nexar's search has no filter by number.
def response_search_numbers:
  [[MPNS, .supMultiMatch] | transpose[] | .[0] as $mpn | .[1].parts[] | select(.mpn == $mpn)] as $parts
  | (($parts | length) + ([.supMultiMatch[] | [0, .hits - (.parts | length)] | max] | add)) as $hits
  | {results: [$parts[START:START + LIMIT][] | {item: MAP(.), snippet: .shortDescription}], hits: $hits};

# Objects by uid, from Nexar's list of all of them.
def response_list:
  .[LIST] as $records
  | [WANTED | to_entries[] | .value as $key | {key, value: first($records[] | select(is_wanted($key))) | MAP(.)}]
  | from_entries;

# One object by uid, from Nexar's list of all of them.
def response_list_object:
  (WANTED | to_entries[0]) as $wanted
  | (first(.[LIST][] | select(is_wanted($wanted.value))) // null) as $record
  | if $record then MAP($record) else "nothing has the uid \($wanted.key)\n" | halt_error(1) end;

# Whether a record is the one that v3's uid stands for: by Nexar's id or, where that is not known, by name.
def is_wanted($key):
  .id == $key or (.name | ascii_downcase) == $key;

# A search of Nexar's list by words of the names.
def response_list_search:
  .[LIST]
  | if WORDS == [] then . else
      map({record: ., names: names_of}) | sort_by(.names[0])
      | map([(.names | rank_of), .record] | select(.[0] != null)) | ranked
    end
  | {results: [.[START:START + LIMIT][] | {item: MAP(.), snippet: null}], hits: length};

# v3's order of objects: the whole name, its beginning, a word of it, another name; null if nothing matches.
def rank_of:
  if join(" ") | all_words_begin | not then null
  elif .[0] == SEARCHED then 0
  elif .[0] | startswith(SEARCHED) then 1
  elif .[0] | all_words_begin then 2
  else 3 end;

# Whether each of the searched words is the beginning of a word of a text.
def all_words_begin:
  [scan("[\\p{L}\\p{N}_]+")] as $words
  | all(WORDS[]; . as $searched | any($words[]; startswith($searched)));

# The names of a seller in small letters, v3's first.
def names_of_seller:
  [seller_name(.id; .name), .name, .aliases[]] | map(ascii_downcase);

# The names of an object in small letters.
def names_of_object:
  [.name, (.aliases // [])[]] | map(ascii_downcase);
