"""What the program tells of itself while it runs: log lines and metrics. No apikey or secret is in either."""
