"""Sources of requests: access logs, JSON lines, HAR, URLs, parts lists and recordings, read into v3 requests.

`source.open_source` detects the format of a file; each format has a reader that yields entries, which `source.py`
converts to requests. Files are streamed: one line or entry is in memory at a time. Messages show a file's name and
positions in it, never its contents, because lines hold API keys.
"""
