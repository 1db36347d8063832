"""What is measured and how; `make bench` runs all of it. Figures are ratios of things run in turns in one run."""
