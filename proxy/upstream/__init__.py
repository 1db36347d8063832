"""The GraphQL service and its identity service, seen from here: tokens, one request, what an answer means."""
