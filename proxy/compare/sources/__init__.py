"""Files of requests that people have, read into requests: access logs, JSON lines, HAR, URLs, lists of parts, recordings.

`opening.open_source` tells what a file is; each kind has a module that reads it into entries, `source.py` makes requests
of those. Files are read as they stream: what is held is one line, or one entry. Nothing of a file is shown but its name
and places in it: lines hold keys.
"""
