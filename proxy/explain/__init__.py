"""What becomes of v3 requests, of one or of all in a log: the service's actions, run on objects that find nothing."""
