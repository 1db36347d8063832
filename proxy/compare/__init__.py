"""Comparison of two services, baseline and candidate: what differs, why, how often, and what switching will cost.

A run sends client requests to both sides, judges each pair of responses, and adds the comparisons up; reports are
functions of the result. Nothing here knows how either side makes its responses.
"""
