"""Comparison of two services, baseline and candidate: differences, their causes and frequency, and the cost of
switching.

A run sends client requests to both sides, judges each pair of responses, and adds the comparisons up; reports are
functions of the result. This package does not depend on how either side makes its responses.
"""
