"""Reports: functions from a result to text, one file per format.

They judge nothing and request nothing. `words.py` holds the wording; `visible.py` makes client data harmless, so that
every format says the same and none can be broken out of.
"""
