"""The retired v3 API: what it is, as data; its requests and responses; and the page that describes it."""
