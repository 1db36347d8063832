"""Recordings: files with the responses of both sides, and a baseline that replays them."""
