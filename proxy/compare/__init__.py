"""Old answers against new ones, until a team can switch over: what differs, why, how often, and what it will cost.

A run asks both sides the requests that people have, compares each pair of answers, and adds up what it finds; reports are
functions of the result. Knows nothing of how either side comes to its responses.
"""
