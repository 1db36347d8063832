"""Places of processes: back-off, and the names whose reservations a successor ends. Processes: together/cli."""

from contextlib import ExitStack

from proxy import app
from proxy.web import ports


def test_early_exits_are_replaced_ever_later_and_names_are_kept_until_one_serves() -> None:
    with ExitStack() as stack:

        def entered(child: app.Child) -> app.Child:
            stack.enter_context(child.pipe)
            stack.enter_context(child.pipe_of_child)
            return child

        children = [entered(app.Child(1, ports.WorkerSockets(()), app.run))]
        for _ in range(9):
            children.append(entered(children[-1].successor()))
        delays = [child.retry_in for child in children]
        assert delays == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, *[app.BACKOFF_MAX] * 3]
        *dead, last = children
        assert last.ended == tuple(child.name for child in dead)
        children[-1].serves = True
        assert entered(children[-1].successor()).ended == (last.name,)


def test_reports_are_read_one_by_one() -> None:
    child = app.Child(1, ports.WorkerSockets(()), app.run)
    with child.pipe, child.pipe_of_child:
        for report in ("", "upstream: is missing"):
            child.pipe_of_child.send(report)
        child.hear()
        assert (child.serves, child.mistake) == (True, "")
        child.hear()
        assert (child.serves, child.mistake) == (True, "upstream: is missing")
