"""Live requests compared while the service answers them: after the response has left, bounded, and switched at will.

The web offers what it has answered (`shadow.py`). The other side is asked over connections of the shadow's own
(`errand.py`, `old_service.py`), within a day's parts (`day_budget.py`). A process beside the worker judges (`judge.py`,
`process.py`), so that no response waits for a comparison. What comes of it is kept in the store (`gathering.py`, by
`watch.py`), where `compare/shadow_results.py` reads it.
"""
