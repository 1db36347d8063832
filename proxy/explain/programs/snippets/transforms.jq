# Transforms of mapping files in jq: a program gets those that its fields need, and what they use.

# v3's price table, like {"USD": [[1, "0.64700"], [10, "0.58000"]]}.
def prices_by_currency($prices):
  reduce ($prices[] | select(.currency != "")) as $price
    ({}; .[$price.currency] += [[$price.quantity, five_decimals($price.price)]]);

# A price as v3 wrote it. The product is rounded to a double, which would turn some numbers close to a half into one:
# $error is what was lost, computed exactly by splitting the price into two halves (Veltkamp, Dekker).
def five_decimals($price):
  ($price | fabs) as $amount
  | (134217729 * $amount) as $shifted
  | ($shifted - ($shifted - $amount)) as $high
  | ($amount * 100000) as $scaled
  | (($high * 100000 - $scaled) + ($amount - $high) * 100000) as $error
  | ($scaled | floor) as $below
  | ($scaled - $below - 0.5 + $error) as $over
  | (if $over > 0 or ($over == 0 and $below % 2 == 1) then $below + 1 else $below end) as $units
  | ($units / 100000 | floor) as $whole
  | "\(if $price < 0 then "-" else "" end)\($whole).\($units - $whole * 100000 + 100000 | tostring[1:])";

# A time as v3 wrote it, like 2023-11-14T22:13:20Z.
def timestamp($time):
  ($time | capture("^(?<moment>.{19})[.0-9]*(?<zone>.*)$")) as $parts
  | ($parts.zone | if test("^[+-]") then
      (if startswith("-") then 1 else -1 end) * ((.[1:3] | tonumber) * 3600 + (.[-2:] | tonumber) * 60)
    else 0 end) as $shift
  | ($parts.moment + "Z" | fromdateiso8601) + $shift
  | todateiso8601;

# A number as v3's text.
def text($value):
  $value | tostring;

# v3's id of an offer: seller, SKU and, where there is one, region.
def naive_id($seller_id; $sku; $region):
  [$seller_id, $sku, ($region | select(filled))] | join("_");

# Whether a value is neither null, nor false, nor empty.
def filled:
  . != null and . != false and . != "";

# The second elements of pairs, sorted by the first ones.
def ranked:
  sort_by(.[0]) | map(.[1]);

# v3's order of offers: authorized first, then in stock, out of stock, other currency, no price.
# A stock of -2 means in stock, the quantity is not known.
def offer_rank($authorized; $stock; $prices; $wanted):
  (if $authorized then 0 else 4 end)
  + if $prices == [] then 3
    elif all($prices[]; .currency != $wanted) then 2
    elif $stock > 0 or $stock == -2 then 0
    else 1 end;

# The media type that v3 gave a picture, by the ending of its URL.
def image_mimetype($url):
  ($url | split(".") | last // "" | ascii_downcase) as $ending
  | if $ending | IN("png", "gif", "svg", "webp") then "image/\($ending)" else "image/jpg" end;

# Whether a collection of documents has datasheets.
def is_datasheet_group($name):
  $name | ascii_downcase | contains("datasheet");

# Whether a collection of documents has compliance documents.
def is_compliance_group($name):
  $name | ascii_downcase | contains("compliance");

# v3's token of a document's name: rohs_statement for "Rohs Statement".
def subtypes($document_name):
  if $document_name == "" then [] else [$document_name | ascii_downcase | [scan("\\S+")] | join("_")] end;

# The links of the CAD formats that exist.
def cad_downloads($cad):
  ["Altium", "Eagle", "Orcad", "Kicad"]
  | map(select($cad["has" + .]) | $cad["downloadUrl" + .] | select(filled));

# The link of a broker's first offer.
def first_click($offers):
  $offers[0].clickUrl;

# The name of each object.
def names($named):
  $named | map(.name);

# The requested uid, if it led to a part with another one.
def redirected($uid; $requested):
  if ($requested | filled) and $requested != $uid then [$requested] else [] end;

# A price in the wanted currency; null where Nexar has no exchange rate and repeats the price.
def converted_price($price; $currency; $converted; $converted_to; $wanted):
  ($converted == $price and $price != 0 and $currency != $wanted) as $repeated
  | if $converted_to != $wanted or $repeated then null else $converted end;

# The lifecycle status of a part, such as Production.
def lifecycle_status($specs):
  spec_of("lifecyclestatus"; $specs) | if .value | filled then .value else .displayValue end;

# The package of a part, such as SOIC.
def case_package($specs):
  spec_of("case_package"; $specs) | .displayValue;

# v3's uid of a company or category: the recorded one, else one that v3bridge computes from Nexar's id.
def uid($table; $tag; $id; $name):
  $table[$id] // $table[$name | ascii_downcase] // ($tag + hexadecimal($id | tonumber));

# A number in ten hexadecimal digits.
def hexadecimal($number):
  [range(9; -1; -1) as $digit | $number / pow(16; $digit) | floor % 16 | "0123456789abcdef"[.:. + 1]] | join("");

# v3's uid of a seller.
def seller_uid($id; $name):
  uid(SELLER_UIDS; "5e11e4"; $id; $name);

# v3's uid of a brand.
def brand_uid($id; $name):
  uid(BRAND_UIDS; "b4a2d0"; $id; $name);

# v3's uid of a manufacturer.
def manufacturer_uid($id; $name):
  uid(MANUFACTURER_UIDS; "3a2fac"; $id; $name);

# v3's uid of a category.
def category_uid($id; $name):
  uid(CATEGORY_UIDS; "ca7e60"; $id; $name);

# v3's uid of each category.
def category_uids($categories):
  $categories | map(category_uid(.id; .name));

# v3's uids from the root to the category itself.
def category_line($category):
  category_uids($category.ancestors + [$category]);

# v3's uid of the last ancestor; null for the root.
def parent_uid($ancestors):
  category_uids($ancestors) | last;

# v3's name of a seller, where it is recorded.
def seller_name($id; $name):
  SELLER_NAMES[$id] // SELLER_NAMES[$name] // $name;

# v3's name of the source of a text or document.
def source_name($name):
  SOURCE_NAMES[$name] // $name;

# v3's uid of a source, where it is recorded. v3bridge makes a digest (BLAKE2b) of other names, because Nexar has no id
# of a source; jq has no such function, so that they have none here.
def source_uid($name):
  SOURCE_UIDS[source_name($name) | ascii_downcase] // SOURCE_UIDS[$name | ascii_downcase];

# The spec of an attribute; null if the part has none.
def spec_of($shortname; $specs):
  first($specs[] | select(.attribute.shortname == $shortname)) // null;

# v3's key of a spec. A general tolerance has that of the quantity which the part has beside it.
def spec_key($shortname; $name; $specs):
  first((SPECS_BESIDE[$shortname] // {}) | to_entries[] | select(spec_of(.key; $specs)) | .value)
  // SPEC_KEYS[$shortname]
  // ($name | ascii_downcase | gsub("[^a-z0-9]+"; "_") | ltrimstr("_") | rtrimstr("_") | select(. != ""))
  // $shortname;

# v3's name of a spec: the words of its key if that depends on a quantity, such as Resistance Tolerance.
def spec_name($shortname; $name; $specs):
  spec_key($shortname; $name; $specs) as $key
  | if $key | IN(SPECS_BESIDE[$shortname][]?) then
      $key | split("_") | map((.[:1] | ascii_upcase) + .[1:]) | join(" ")
    else SPEC_NAMES[$shortname] // $name end;

# Whether a part shows this spec. Where several attributes make one spec of v3, only one of them does.
def spec_shown($shortname; $specs):
  SPEC_RANGES[$shortname] as $range
  | if $range then
      {value: [], low: ["value"], high: ["value", "low"]} as $before
      | first($before | keys_unsorted[] | select($range[.] == $shortname)) as $role
      | all($before[$role][]; spec_of($range[.]; $specs) == null)
    elif SPECS_BESIDE[$shortname] then
      SPECS_OF_KEYS[spec_key($shortname; ""; $specs)] as $own
      | $own == $shortname or spec_of($own; $specs) == null
    else true end;

# v3's datatype of a spec.
def spec_datatype($shortname; $value_type):
  if $value_type != "number" or ($shortname | IN(PERCENT_SPECS[])) then "string"
  elif $shortname | IN(WHOLE_SPECS[]) then "integer"
  else "decimal" end;

# Whether v3 gave a spec a unit.
def spec_has_unit($shortname; $units_name):
  ($units_name | filled) and ($shortname | IN(PERCENT_SPECS[]) | not);

# v3's values of a spec; none of an end of a range, or of an empty value.
def spec_values($shortname; $value_type; $value; $si_value):
  if ($shortname | IN(SPEC_RANGES[.].low, SPEC_RANGES[.].high)) or $value + $si_value == "" then []
  elif $value_type == "number" then [spec_number($shortname; $value; $si_value)]
  elif $shortname | IN(LISTED_SPECS[]) then $value | split(", ")
  else [$value] end;

# A number as v3 wrote it, in SI base units: 22000.0, 14 for a count, ±5% for a tolerance.
def spec_number($shortname; $value; $si_value):
  (if $si_value | filled then $si_value else $value end | tonumber? * 1) // null
  | if . == null then $value
    elif $shortname | IN(PERCENT_SPECS[]) then "±\(.)%"
    elif ($shortname | IN(WHOLE_SPECS[])) and . == floor then tostring
    elif tostring | test("[.e]") then tostring
    else "\(.).0" end;

# One end of the range that a spec belongs to.
def spec_end($side; $shortname; $specs):
  spec_of(SPEC_RANGES[$shortname][$side] // ""; $specs)
  | if . then spec_number(.attribute.shortname; .value; .siValue) | select(filled) // null else null end;

# The lower end of the range that a spec belongs to.
def spec_low($shortname; $specs):
  spec_end("low"; $shortname; $specs);

# The upper end of the range that a spec belongs to.
def spec_high($shortname; $specs):
  spec_end("high"; $shortname; $specs);

# v3's text of a spec for people: both ends of a range, ±5% of a tolerance, else Nexar's.
def spec_display($shortname; $shown; $value; $si_value; $specs):
  SPEC_RANGES[$shortname] as $range
  | spec_of($range.low; $specs) as $low
  | spec_of($range.high; $specs) as $high
  | if $shortname | IN(PERCENT_SPECS[]) then
      spec_number($shortname; $value; $si_value) | if . == $value then $shown else . end
    elif $range == null or $shortname == $range.value then $shown
    elif $low and $high then "\($low.displayValue) to \($high.displayValue)"
    else "\($shown) (\(if $shortname == $range.low then "min" else "max" end))" end;
