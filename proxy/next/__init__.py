"""The core on the new store: queries become results, each question is paid for once. Not used by the service yet."""
