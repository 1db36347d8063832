"""A comparison run: requests are chosen and estimated, sent to both sides within a budget, and progress is kept."""
