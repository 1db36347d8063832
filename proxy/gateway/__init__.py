"""The way of one request, read in pipeline.py from top to bottom; beside it what it consults on the way."""
