"""Evidence: what a sample of live upstream exchanges says about the assumptions, judged aside and kept in the store.

`sampler.py` takes the sample and has it judged by a process of the conformance tool; `records.py` keeps the result.
"""
