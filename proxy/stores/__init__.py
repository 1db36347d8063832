"""What workers, restarts and machines must know in common. base.py says what a store can do; the others do it.

open.py alone knows which there are; they do not know each other.
"""
