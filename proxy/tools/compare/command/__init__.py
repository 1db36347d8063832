"""Parts of the command `compare`.

`options.py` declares the options and `checks.py` checks them; `setup.py` reads the requests and opens both sides
(`sides.py`, `local_service.py`); `runs.py` carries the run out.
"""
