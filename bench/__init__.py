"""Benchmarks; `make bench` runs all. Most figures are ratios of alternating measurements within one run."""
