# Requests of a program for the shell: `main_…` for each kind of v3 request, and what they use.

# Send the operation, and print v3's response.
main_one() {
  access_token
  response=$(graphql "$QUERY" "$VARIABLES")
  printf '%s' "$response" | v3 RESPONSE
}

# Search the number. Where the page leaves open how many parts have it they are counted, which costs nothing.
main_match_number() {
  access_token
  response=$(graphql "$QUERY" "$VARIABLES")
  count=null
  if [ "$(printf '%s' "$response" | v3 needs_count)" = true ]; then
    counted=$(graphql "$COUNT_QUERY" "$COUNT_VARIABLES")
    count=$(printf '%s' "$counted" | jq '.supMultiMatch[0].hits')
  fi
  printf '%s' "$response" | v3 "response_match_number($count)"
}

# Send each operation, and put the results in the order of the queries.
main_match() {
  access_token
  responses=$(EACH_OPERATION)
  printf '%s' "$responses" | v3 response_match --slurp
}

# Apply the jq functions below to a response.
v3() { # name of the function, and further options of jq
  call=$1
  shift
  jq "$@" --arg country "$COUNTRY" --arg currency "$CURRENCY" "$V3 $call"
}

# Get an access token into $token. It is valid for a day. The secret is sent through a pipe, because other users of a
# machine can see the arguments of programs.
access_token() {
  if [ -z "${NEXAR_CLIENT_ID:-}" ] || [ -z "${NEXAR_CLIENT_SECRET:-}" ]; then
    fail "set NEXAR_CLIENT_ID and NEXAR_CLIENT_SECRET to those of your Nexar application" 2
  fi
  response=$(printf '%s' "$NEXAR_CLIENT_SECRET" | post "$TOKEN_URL" --data grant_type=client_credentials \
    --data-urlencode "client_id=$NEXAR_CLIENT_ID" --data-urlencode client_secret@- \
    --data-urlencode "scope=$SCOPE") || exit
  token=$(printf '%s' "$response" | jq --exit-status --raw-output .access_token) || fail "$TOKEN_URL: no access token"
}

# Send one operation, and print its data. Any error ends the program: data beside it would lack something.
graphql() { # document, and variables as jq
  body=$(jq --null-input --arg query "$1" --arg country "$COUNTRY" --arg currency "$CURRENCY" \
    "{query: \$query, variables: ($2)}") || exit
  response=$(printf 'Authorization: Bearer %s\n' "$token" | post "$GRAPHQL_URL" --header @- \
    --header 'Content-Type: application/json' --data-binary "$body") || exit
  messages=$(printf '%s' "$response" | jq --raw-output '[.errors // [] | .[].message] | join("; ")') \
    || fail "$GRAPHQL_URL: the response is not JSON"
  [ -z "$messages" ] || fail "Nexar: $messages"
  printf '%s' "$response" | jq --compact-output .data
}

# Send a POST request, and print its response.
post() { # address, and further options of curl
  url=$1
  shift
  response=$(curl --silent --show-error --fail-with-body --max-time 60 "$@" "$url") || fail "$url: $response"
  printf '%s' "$response"
}

# End the program with a message.
fail() { # message, and exit code
  printf '%.1000s\n' "$1" >&2
  exit "${2:-1}"
}
