"""The service of comments and tasks, with a stream of comment events."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import msgspec
from aiohttp import web
from msgspec.structs import replace

from nexar_sandbox import journal
from nexar_sandbox.design import design_store, inputs, records, rest, tables

# Events that a subscriber may be behind; older ones are dropped.
MAX_QUEUED = 1000


class CommentEvents:
    """Broadcasts comment events to all current subscribers. A slow subscriber loses its oldest events."""

    def __init__(self) -> None:
        self._subscribers: set[asyncio.Queue[records.CommentEvent | None]] = set()

    def publish(self, event: records.CommentEvent) -> None:
        """Send an event to all current subscribers."""
        for queue in self._subscribers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(event)

    def close(self) -> None:
        """End all streams."""
        for queue in self._subscribers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None)

    @contextmanager
    def subscribe(self) -> Iterator[AsyncIterator[records.CommentEvent]]:
        """The events from now on, until the block ends or the service stops."""
        queue: asyncio.Queue[records.CommentEvent | None] = asyncio.Queue(MAX_QUEUED)
        self._subscribers.add(queue)
        try:
            yield _queued(queue)
        finally:
            self._subscribers.discard(queue)


async def _queued(queue: asyncio.Queue[records.CommentEvent | None]) -> AsyncIterator[records.CommentEvent]:
    while (event := await queue.get()) is not None:
        yield event


# A user name after an @, without a full stop after it.
MENTION = re.compile(r"@(\w+(?:[.-]\w+)*)")
CommentParent: TypeAlias = records.CommentThread | records.Task


class CommentService(rest.DesignService):
    """Comment threads and tasks, both with comments. Only comments in threads are published as events."""

    name = "collaboration"

    def __init__(self, store: design_store.DesignStore, credential: str, exchanges: journal.RequestJournal) -> None:
        super().__init__(store, credential, exchanges)
        self.events = CommentEvents()

    def served_tables(self) -> Mapping[str, tables.Table[Any]]:
        """Threads and tasks."""
        data = self.store.tables
        return {"threads": data.threads, "tasks": data.tasks}

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Add the routes. Comments are below their thread or task."""
        router.add_post("/threads", self.create_thread)
        router.add_delete("/threads/{id}", self.delete_thread)
        router.add_post("/tasks", self.create_task)
        router.add_patch("/tasks/{id}", self.update_task)
        router.add_delete("/tasks/{id}", self.delete_task)
        router.add_post("/{place:threads|tasks}/{id}/comments", self.create_comment)
        router.add_patch("/{place:threads|tasks}/{id}/comments/{comment}", self.update_comment)
        router.add_delete("/{place:threads|tasks}/{id}/comments/{comment}", self.delete_comment)
        router.add_get("/events", self.stream_events)

    async def create_thread(self, request: web.Request) -> web.Response:
        """Create a thread with its first comment."""
        input_ = await rest.read_input(request, inputs.CommentThreadInput)
        threads, now = self.store.tables.threads, self.store.now()
        project_threads = threads.where("project_id", [input_.project_id])[0]
        new_thread = records.CommentThread(
            id=self.store.new_id("thread"),
            project_id=input_.project_id,
            workspace_id=input_.workspace_id,
            thread_number=max((thread.thread_number for thread in project_threads), default=0) + 1,
            status=0,
            created_by_id=input_.by,
            modified_by_id=input_.by,
            created_at=now,
            modified_at=now,
            context=input_.context,
            document_name=input_.document_name,
            comments=(self._comment(input_.by, input_.text),),
        )
        self._publish("ThreadAdded", threads.put(new_thread), new_thread.comments[0])
        return rest.json_response(new_thread, 201)

    async def delete_thread(self, request: web.Request) -> web.Response:
        """Remove a thread with all its comments."""
        threads = self.store.tables.threads
        thread: records.CommentThread = rest.find_record(threads, request.match_info["id"], "comment thread")
        threads.remove(thread.id)
        for comment in thread.comments:
            self._publish("CommentDeleted", thread, comment)
        return rest.json_response(thread)

    async def create_task(self, request: web.Request) -> web.Response:
        """Create a task, assigned to its author."""
        input_ = await rest.read_input(request, inputs.TaskInput)
        if not input_.name.strip():
            raise ValueError("a task needs a name")
        tasks, now = self.store.tables.tasks, self.store.now()
        task = records.Task(
            id=self.store.new_id("task"),
            workspace_id=input_.workspace_id,
            ref_id=f"T-{len(tasks) + 1}",
            name=input_.name,
            description=input_.description,
            priority=input_.priority,
            status=input_.status,
            assignee_id=input_.by,
            created_by_id=input_.by,
            modified_by_id=input_.by,
            created_at=now,
            modified_at=now,
            project_id=input_.project_id,
        )
        return rest.json_response(tasks.put(task), 201)

    async def update_task(self, request: web.Request) -> web.Response:
        """Update name, description, priority or status of a task."""
        input_ = await rest.read_input(request, inputs.TaskUpdateInput)
        tasks = self.store.tables.tasks
        task: records.Task = rest.find_record(tasks, request.match_info["id"], "task")
        changes = {
            name: value
            for name in ("name", "description", "priority", "status")
            if (value := getattr(input_, name)) is not None
        }
        return rest.json_response(
            tasks.put(replace(task, **changes, modified_by_id=input_.by, modified_at=self.store.now()))
        )

    async def delete_task(self, request: web.Request) -> web.Response:
        """Remove a task."""
        task = rest.find_record(self.store.tables.tasks, request.match_info["id"], "task")
        self.store.tables.tasks.remove(task.id)
        return rest.json_response(task)

    async def create_comment(self, request: web.Request) -> web.Response:
        """Add a comment at the end."""
        input_ = await rest.read_input(request, inputs.CommentInput)
        parent = self._parent(request)
        comment = self._comment(input_.by, input_.text)
        self._publish("CommentAdded", self._replace_comments(parent, (*parent.comments, comment), input_.by), comment)
        return rest.json_response(comment, 201)

    async def update_comment(self, request: web.Request) -> web.Response:
        """Replace the text of a comment."""
        input_ = await rest.read_input(request, inputs.CommentInput)
        parent = self._parent(request)
        old = _comment_of(parent, request.match_info["comment"])
        text = _required_text(input_.text)
        new = replace(old, text=text, modified_by_id=input_.by, modified_at=self.store.now())
        comments = tuple(new if comment is old else comment for comment in parent.comments)
        self._publish("CommentUpdated", self._replace_comments(parent, comments, input_.by), new)
        return rest.json_response(new)

    async def delete_comment(self, request: web.Request) -> web.Response:
        """Remove a comment."""
        input_ = await rest.read_input(request, inputs.ChangeInput)
        parent = self._parent(request)
        removed = _comment_of(parent, request.match_info["comment"])
        comments = tuple(comment for comment in parent.comments if comment is not removed)
        self._publish("CommentDeleted", self._replace_comments(parent, comments, input_.by), removed)
        return rest.json_response(removed)

    async def stream_events(self, request: web.Request) -> web.StreamResponse:
        """Stream comment events as lines of JSON. An empty line is sent at once: from then on no event is missed."""
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        with self.events.subscribe() as stream:
            await response.prepare(request)
            await response.write(b"\n")
            async for event in stream:
                await response.write(msgspec.json.encode(event) + b"\n")
        await response.write_eof()
        return response

    def _parent(self, request: web.Request) -> CommentParent:
        id_ = request.match_info["id"]
        if request.match_info["place"] == "threads":
            thread: records.CommentThread = rest.find_record(self.store.tables.threads, id_, "comment thread")
            return thread
        task: records.Task = rest.find_record(self.store.tables.tasks, id_, "task")
        return task

    def _comment(self, author: str, text: str) -> records.Comment:
        now, named = self.store.now(), set(MENTION.findall(text))
        return records.Comment(
            comment_id=self.store.new_id("comment"),
            text=_required_text(text),
            created_by_id=author,
            modified_by_id=author,
            created_at=now,
            modified_at=now,
            mentioned_ids=tuple(user.id for user in self.store.tables.users if user.user_name in named),
        )

    def _replace_comments(self, parent: CommentParent, comments: tuple[records.Comment, ...], by: str) -> CommentParent:
        """Store the thread or task with these comments."""
        changed = replace(parent, comments=comments, modified_by_id=by, modified_at=self.store.now())
        if isinstance(changed, records.CommentThread):
            return self.store.tables.threads.put(changed)
        return self.store.tables.tasks.put(changed)

    def _publish(self, action: str, parent: CommentParent, comment: records.Comment) -> None:
        """Publish an event, unless the comment is on a task."""
        if isinstance(parent, records.CommentThread):
            self.events.publish(
                records.CommentEvent(action=action, workspace_id=parent.workspace_id, thread=parent, comment=comment)
            )


def _required_text(text: str) -> str:
    if not text.strip():
        raise ValueError("a comment needs a text")
    return text


def _comment_of(parent: CommentParent, id_: str) -> records.Comment:
    for comment in parent.comments:
        if comment.comment_id == id_:
            return comment
    raise LookupError(f"there is no comment {id_}")
