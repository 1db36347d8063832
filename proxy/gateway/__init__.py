"""Path of one request: pipeline.py has its steps from top to bottom; the other modules are what the steps use."""
