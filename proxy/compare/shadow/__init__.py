"""Shadowing: live requests compared after their responses have left, bounded, and switchable while the service runs.

The web layer offers answered requests to a queue (`queue.py`). A job (`job.py`) sends the request to the other service
over connections of its own (`baseline_client.py`), within a daily budget (`daily_budget.py`). A process beside the
worker judges (`judge_client.py`, `judge_process.py`), so that no response waits for a comparison. `controller.py` keeps
the tallies in the store, where `results.py` reads them.
"""
