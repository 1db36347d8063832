"""Pure judgement of two responses: what differs, why, which differences are ignored, and the verdict.

`judge.py` turns a pair of responses into a comparison: `diff.py` finds the differences, `rules.py` ignores some,
`causes.py` explains the others. `tally.py` adds comparisons up; `summary.py` makes the result that reports show.
Nothing here sends a request or knows the mappings under test.
"""
