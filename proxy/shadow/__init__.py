"""Shadowing: live requests are compared after their responses have been sent, within limits, switchable at run time.

The web layer offers answered requests to a queue (`queue.py`). A job (`job.py`) sends the request to the other service
over separate connections (`baseline_client.py`) or within a daily budget (`daily_budget.py`). A child process of the
worker judges (`judge_client.py`; the process itself is the comparison's), so that comparisons do not delay responses.
`controller.py` saves the tallies in the store, where `results.py` reads them.
"""
