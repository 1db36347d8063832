"""Building blocks without a domain, such as a clock, single flight and rate limit windows. Import no other package."""
