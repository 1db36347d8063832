"""Reports: functions from a result to text, one file per format.

They neither judge nor send requests. `words.py` holds the wording, which is common to all formats; `visible.py` makes
client data safe to display.
"""
