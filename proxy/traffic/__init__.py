"""v3 traffic as recorded: requests and responses, the sources that they are read from, recordings, estimates."""
