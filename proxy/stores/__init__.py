"""What workers, restarts and machines must know in common. base.py says what a store can do; the others do it."""
