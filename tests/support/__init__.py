"""What several rooms' tests share: an upstream that says what it is told, and a running proxy."""
