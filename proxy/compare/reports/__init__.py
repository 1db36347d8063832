"""Reports: functions from a result to text, one file a format.

They judge nothing and ask nothing. What they say in words stands in `words.py`, and what the data brings with it is
made harmless in `visible.py`, so that every format says the same and none can be broken out of.
"""
