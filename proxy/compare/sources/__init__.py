"""Sources of requests: access logs, JSON lines, HAR, URLs, parts lists and recordings, read into v3 requests.

`source.open_source` recognizes the format of a file; each format has a reader that yields entries, and `source.py`
makes requests of those. Files are streamed: one line or entry is held at a time. Messages show a file's name and
places in it, never its contents: lines hold keys.
"""
