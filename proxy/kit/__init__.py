"""Small building blocks without a domain: clock, single flight, windows, located YAML. They know nobody else."""
