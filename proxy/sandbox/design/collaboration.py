"""The service of comments and tasks, with a stream of what happens to comments."""

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
from aiohttp import web
from msgspec.structs import replace

from proxy.sandbox import journal
from proxy.sandbox.design import drafts, events, holdings, records, rest
from proxy.sandbox.design.tables import Table

# A user's name after an @; a full stop after it is the sentence's.
MENTION = re.compile(r"@(\w+(?:[.-]\w+)*)")
Place: TypeAlias = records.Thread | records.Task


class Collaboration(rest.Service):
    """Threads with comments, and tasks with comments. Only those of threads are events."""

    name = "collaboration"

    def __init__(self, held: holdings.Holdings, credential: str, kept: journal.RequestJournal) -> None:
        super().__init__(held, credential, kept)
        self.events = events.Events()

    def tables(self) -> Mapping[str, Table[Any]]:
        """Threads and tasks."""
        data = self.held.data
        return {"threads": data.threads, "tasks": data.tasks}

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Comments are below their thread or task."""
        router.add_post("/threads", self.open)
        router.add_delete("/threads/{id}", self.close)
        router.add_post("/tasks", self.plan)
        router.add_patch("/tasks/{id}", self.change)
        router.add_delete("/tasks/{id}", self.drop)
        router.add_post("/{place:threads|tasks}/{id}/comments", self.say)
        router.add_patch("/{place:threads|tasks}/{id}/comments/{comment}", self.reword)
        router.add_delete("/{place:threads|tasks}/{id}/comments/{comment}", self.unsay)
        router.add_get("/events", self.listen)

    async def open(self, request: web.Request) -> web.Response:
        """A thread with its first comment."""
        draft = await rest.body(request, drafts.Thread)
        threads, now = self.held.data.threads, self.held.now()
        others = threads.where("project_id", [draft.project_id])[0]
        made = records.Thread(
            id=self.held.new_id("thread"),
            project_id=draft.project_id,
            workspace_id=draft.workspace_id,
            thread_number=max((one.thread_number for one in others), default=0) + 1,
            status=0,
            created_by_id=draft.by,
            modified_by_id=draft.by,
            created_at=now,
            modified_at=now,
            context=draft.context,
            document_name=draft.document_name,
            comments=(self._comment(draft.by, draft.text),),
        )
        self._tell("ThreadAdded", threads.put(made), made.comments[0])
        return rest.reply(made, 201)

    async def close(self, request: web.Request) -> web.Response:
        """Remove a thread with all its comments."""
        threads = self.held.data.threads
        thread: records.Thread = rest.found(threads, request.match_info["id"], "comment thread")
        threads.remove(thread.id)
        for comment in thread.comments:
            self._tell("CommentDeleted", thread, comment)
        return rest.reply(thread)

    async def plan(self, request: web.Request) -> web.Response:
        """A task, which is its author's until somebody else is found."""
        draft = await rest.body(request, drafts.Task)
        if not draft.name.strip():
            raise ValueError("a task needs a name")
        tasks, now = self.held.data.tasks, self.held.now()
        made = records.Task(
            id=self.held.new_id("task"),
            workspace_id=draft.workspace_id,
            ref_id=f"T-{len(tasks) + 1}",
            name=draft.name,
            description=draft.description,
            priority=draft.priority,
            status=draft.status,
            assignee_id=draft.by,
            created_by_id=draft.by,
            modified_by_id=draft.by,
            created_at=now,
            modified_at=now,
            project_id=draft.project_id,
        )
        return rest.reply(tasks.put(made), 201)

    async def change(self, request: web.Request) -> web.Response:
        """Other words, priority or status for a task."""
        draft = await rest.body(request, drafts.TaskChange)
        tasks = self.held.data.tasks
        task: records.Task = rest.found(tasks, request.match_info["id"], "task")
        given = {
            name: value
            for name in ("name", "description", "priority", "status")
            if (value := getattr(draft, name)) is not None
        }
        return rest.reply(tasks.put(replace(task, **given, modified_by_id=draft.by, modified_at=self.held.now())))

    async def drop(self, request: web.Request) -> web.Response:
        """Remove a task."""
        task = rest.found(self.held.data.tasks, request.match_info["id"], "task")
        self.held.data.tasks.remove(task.id)
        return rest.reply(task)

    async def say(self, request: web.Request) -> web.Response:
        """A comment at the end."""
        draft = await rest.body(request, drafts.Text)
        row = self._place(request)
        made = self._comment(draft.by, draft.text)
        self._tell("CommentAdded", self._put(row, (*row.comments, made), draft.by), made)
        return rest.reply(made, 201)

    async def reword(self, request: web.Request) -> web.Response:
        """Other words for a comment."""
        draft = await rest.body(request, drafts.Text)
        row = self._place(request)
        old = _comment_of(row, request.match_info["comment"])
        text = _words(draft.text)
        new = replace(old, text=text, modified_by_id=draft.by, modified_at=self.held.now())
        kept = tuple(new if one is old else one for one in row.comments)
        self._tell("CommentUpdated", self._put(row, kept, draft.by), new)
        return rest.reply(new)

    async def unsay(self, request: web.Request) -> web.Response:
        """Remove a comment."""
        draft = await rest.body(request, drafts.Draft)
        row = self._place(request)
        gone = _comment_of(row, request.match_info["comment"])
        kept = tuple(one for one in row.comments if one is not gone)
        self._tell("CommentDeleted", self._put(row, kept, draft.by), gone)
        return rest.reply(gone)

    async def listen(self, request: web.Request) -> web.StreamResponse:
        """Events as lines of JSON, from now on; an empty line at once."""
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        with self.events.listening() as heard:
            await response.prepare(request)
            await response.write(b"\n")
            async for event in heard:
                await response.write(msgspec.json.encode(event) + b"\n")
        await response.write_eof()
        return response

    def _place(self, request: web.Request) -> Place:
        id_ = request.match_info["id"]
        if request.match_info["place"] == "threads":
            thread: records.Thread = rest.found(self.held.data.threads, id_, "comment thread")
            return thread
        task: records.Task = rest.found(self.held.data.tasks, id_, "task")
        return task

    def _comment(self, author: str, text: str) -> records.Comment:
        now, named = self.held.now(), set(MENTION.findall(text))
        return records.Comment(
            comment_id=self.held.new_id("comment"),
            text=_words(text),
            created_by_id=author,
            modified_by_id=author,
            created_at=now,
            modified_at=now,
            mentioned_ids=tuple(one.id for one in self.held.data.users if one.user_name in named),
        )

    def _put(self, row: Place, comments: tuple[records.Comment, ...], by: str) -> Place:
        """The thread or task with these comments."""
        changed = replace(row, comments=comments, modified_by_id=by, modified_at=self.held.now())
        if isinstance(changed, records.Thread):
            return self.held.data.threads.put(changed)
        return self.held.data.tasks.put(changed)

    def _tell(self, action: str, place: Place, comment: records.Comment) -> None:
        """Nobody is told of tasks."""
        if isinstance(place, records.Thread):
            self.events.tell(
                records.Event(action=action, workspace_id=place.workspace_id, thread=place, comment=comment)
            )


def _words(text: str) -> str:
    if not text.strip():
        raise ValueError("a comment needs a text")
    return text


def _comment_of(row: Place, id_: str) -> records.Comment:
    for comment in row.comments:
        if comment.comment_id == id_:
            return comment
    raise LookupError(f"there is no comment {id_}")
