"""Changes of comments and tasks. Only comments in threads are published as events."""

import re
from typing import Any

from nexar_sandbox.design import design_store, records, rest

# A user name after an @, without a full stop after it.
MENTION = re.compile(r"@(\w+(?:[.-]\w+)*)")


def create_thread(store: design_store.DesignStore, *, by: str, text: str, **fields: Any) -> records.Record:
    project_threads = store.tables[records.CommentThread].where("project_id", [fields["project_id"]])[0]
    thread = store.create(
        records.CommentThread,
        by,
        id=store.new_id("thread"),
        thread_number=max((thread.thread_number for thread in project_threads), default=0) + 1,
        status=0,
        comments=(_comment(store, by, text),),
        **fields,
    )
    _publish(store, "ThreadAdded", thread, thread.comments[0])
    return thread


def delete_thread(store: design_store.DesignStore, *, id: str, **_: Any) -> records.Record:
    thread = store.tables[records.CommentThread].remove(id, "comment thread")
    for comment in thread.comments:
        _publish(store, "CommentDeleted", thread, comment)
    return thread


def create_task(store: design_store.DesignStore, *, by: str, name: str, **fields: Any) -> records.Record:
    """Create a task of a project, or of the workspace if there is no project, assigned to its author."""
    if not name.strip():
        raise ValueError("a task needs a name")
    defaults = {"priority": "UNDEFINED", "status": "TO_DO"}
    ref_id = f"T-{len(store.tables[records.Task]) + 1}"
    id_ = store.new_id("task")
    return store.create(records.Task, by, id=id_, ref_id=ref_id, name=name, assignee_id=by, **{**defaults, **fields})


def update_task(store: design_store.DesignStore, *, by: str, id: str, **fields: Any) -> records.Record:
    return store.update(store.tables[records.Task].find(id, "task"), by, **fields)


def delete_task(store: design_store.DesignStore, *, id: str, **_: Any) -> records.Record:
    return store.tables[records.Task].remove(id, "task")


def create_comment(store: design_store.DesignStore, *, by: str, place: str, id: str, text: str) -> records.Record:
    parent = _parent(store, place, id)
    comment = _comment(store, by, text)
    _publish(store, "CommentAdded", store.update(parent, by, comments=(*parent.comments, comment)), comment)
    return comment


def update_comment(
    store: design_store.DesignStore, *, by: str, place: str, id: str, comment: str, text: str
) -> records.Record:
    parent = _parent(store, place, id)
    old = _comment_of(parent, comment)
    new = store.changed(old, by, text=_required_text(text))
    comments = tuple(new if each is old else each for each in parent.comments)
    _publish(store, "CommentUpdated", store.update(parent, by, comments=comments), new)
    return new


def delete_comment(store: design_store.DesignStore, *, by: str, place: str, id: str, comment: str) -> records.Record:
    parent = _parent(store, place, id)
    removed = _comment_of(parent, comment)
    comments = tuple(each for each in parent.comments if each is not removed)
    _publish(store, "CommentDeleted", store.update(parent, by, comments=comments), removed)
    return removed


def _parent(store: design_store.DesignStore, place: str, id_: str) -> records.Record:
    """Return the thread or task that has comments. Raises LookupError."""
    if place == "threads":
        return store.tables[records.CommentThread].find(id_, "comment thread")
    return store.tables[records.Task].find(id_, "task")


def _comment(store: design_store.DesignStore, by: str, text: str) -> records.Record:
    named = set(MENTION.findall(text))
    return store.stamped(
        records.Comment,
        by,
        comment_id=store.new_id("comment"),
        text=_required_text(text),
        mentions=[{"user_id": user.id} for user in store.tables[records.User] if user.user_name in named],
    )


def _publish(store: design_store.DesignStore, action: str, parent: records.Record, comment: records.Record) -> None:
    """Publish an event, unless the comment is on a task."""
    if isinstance(parent, records.CommentThread):
        store.comment_events.publish(
            records.CommentEvent(action=action, workspace_id=parent.workspace_id, thread=parent, comment=comment)
        )


def _required_text(text: str) -> str:
    if not text.strip():
        raise ValueError("a comment needs a text")
    return text


def _comment_of(parent: records.Record, id_: str) -> records.Record:
    comment: records.Record | None = next((each for each in parent.comments if each.comment_id == id_), None)
    if comment is None:
        raise LookupError(f"there is no comment {id_}")
    return comment


CHANGES: rest.Changes = {
    "POST /threads": create_thread,
    "DELETE /threads/{id}": delete_thread,
    "POST /tasks": create_task,
    "PATCH /tasks/{id}": update_task,
    "DELETE /tasks/{id}": delete_task,
    "POST /{place:threads|tasks}/{id}/comments": create_comment,
    "PATCH /{place:threads|tasks}/{id}/comments/{comment}": update_comment,
    "DELETE /{place:threads|tasks}/{id}/comments/{comment}": delete_comment,
}
