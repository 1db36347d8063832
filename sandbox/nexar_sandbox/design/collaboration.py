"""Changes of comments and tasks. Only comments in threads are published as events."""

import re
from typing import Any

import msgspec
from msgspec.structs import replace

from nexar_sandbox.design import design_store, records, rest

# A user name after an @, without a full stop after it.
MENTION = re.compile(r"@(\w+(?:[.-]\w+)*)")
NOUNS = {"threads": "comment thread", "tasks": "task"}


def create_thread(
    store: design_store.DesignStore,
    *,
    by: str,
    project_id: str,
    workspace_id: str,
    text: str,
    context: dict[str, Any],
    document_name: str,
) -> records.Record:
    """Create a thread with its first comment."""
    threads = store.tables[records.CommentThread]
    project_threads = threads.where("project_id", [project_id])[0]
    thread = threads.put(
        records.CommentThread(
            id=store.new_id("thread"),
            project_id=project_id,
            workspace_id=workspace_id,
            thread_number=max((thread.thread_number for thread in project_threads), default=0) + 1,
            status=0,
            **_stamps(store, by),
            context=msgspec.convert(context, records.CommentContext),
            document_name=document_name,
            comments=(_comment(store, by, text),),
        )
    )
    _publish(store, "ThreadAdded", thread, thread.comments[0])
    return thread


def delete_thread(store: design_store.DesignStore, *, id: str) -> records.Record:
    """Remove a thread with all its comments."""
    thread = _remove(store, "threads", id)
    for comment in thread.comments:
        _publish(store, "CommentDeleted", thread, comment)
    return thread


def create_task(
    store: design_store.DesignStore,
    *,
    by: str,
    workspace_id: str,
    name: str,
    description: str,
    project_id: str | None = None,
    priority: str = "UNDEFINED",
    status: str = "TO_DO",
) -> records.Record:
    """Create a task of a project, or of the workspace if there is no project, assigned to its author."""
    if not name.strip():
        raise ValueError("a task needs a name")
    tasks = store.tables[records.Task]
    return tasks.put(
        records.Task(
            id=store.new_id("task"),
            workspace_id=workspace_id,
            ref_id=f"T-{len(tasks) + 1}",
            name=name,
            description=description,
            priority=priority,
            status=status,
            assignee_id=by,
            **_stamps(store, by),
            project_id=project_id,
        )
    )


def update_task(
    store: design_store.DesignStore,
    *,
    by: str,
    id: str,
    name: str | None = None,
    description: str | None = None,
    priority: str | None = None,
    status: str | None = None,
) -> records.Record:
    """Change a task; what is None stays as it is."""
    tasks = store.tables[records.Task]
    given = {"name": name, "description": description, "priority": priority, "status": status}
    changes = {field: value for field, value in given.items() if value is not None}
    return tasks.put(replace(tasks.find(id, "task"), **changes, modified_by_id=by, modified_at=store.now()))


def delete_task(store: design_store.DesignStore, *, id: str) -> records.Record:
    """Remove a task."""
    return _remove(store, "tasks", id)


def create_comment(store: design_store.DesignStore, *, by: str, place: str, id: str, text: str) -> records.Record:
    """Add a comment at the end of a thread or task."""
    parent = _find(store, place, id)
    comment = _comment(store, by, text)
    _publish(store, "CommentAdded", _replace_comments(store, parent, (*parent.comments, comment), by), comment)
    return comment


def update_comment(
    store: design_store.DesignStore, *, by: str, place: str, id: str, comment: str, text: str
) -> records.Record:
    """Replace the text of a comment."""
    parent = _find(store, place, id)
    old = _comment_of(parent, comment)
    new = replace(old, text=_required_text(text), modified_by_id=by, modified_at=store.now())
    comments = tuple(new if each is old else each for each in parent.comments)
    _publish(store, "CommentUpdated", _replace_comments(store, parent, comments, by), new)
    return new


def delete_comment(store: design_store.DesignStore, *, by: str, place: str, id: str, comment: str) -> records.Record:
    """Remove a comment."""
    parent = _find(store, place, id)
    removed = _comment_of(parent, comment)
    comments = tuple(each for each in parent.comments if each is not removed)
    _publish(store, "CommentDeleted", _replace_comments(store, parent, comments, by), removed)
    return removed


def _find(store: design_store.DesignStore, place: str, id_: str) -> records.Record:
    return store.tables.of_service("collaboration")[place].find(id_, NOUNS[place])


def _remove(store: design_store.DesignStore, place: str, id_: str) -> records.Record:
    removed = _find(store, place, id_)
    store.tables[type(removed)].remove(id_)
    return removed


def _stamps(store: design_store.DesignStore, by: str) -> dict[str, str]:
    """Author and time of a new record."""
    now = store.now()
    return {"created_by_id": by, "modified_by_id": by, "created_at": now, "modified_at": now}


def _comment(store: design_store.DesignStore, by: str, text: str) -> records.Record:
    named = set(MENTION.findall(text))
    comment: records.Record = records.Comment(
        comment_id=store.new_id("comment"),
        text=_required_text(text),
        **_stamps(store, by),
        mentioned_ids=tuple(user.id for user in store.tables[records.User] if user.user_name in named),
    )
    return comment


def _replace_comments(
    store: design_store.DesignStore, parent: records.Record, comments: tuple[records.Record, ...], by: str
) -> records.Record:
    """Store the thread or task with these comments."""
    return store.tables.put(replace(parent, comments=comments, modified_by_id=by, modified_at=store.now()))


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
