"""v3 traffic as recorded: requests and responses, the files that they are read from, recordings, estimates."""
