"""Comments and tasks of a project at the start, made by seeding.py."""

import random
from collections.abc import Iterator, Sequence

from proxy.sandbox.design import blueprints, boards, choices, moments, records

THREADS = 3


def threads(
    built: boards.Built, people: Sequence[records.User], rng: random.Random, past: moments.Past
) -> Iterator[records.Thread]:
    """A few conversations, each about one design item."""
    project = built.project
    for number, item in enumerate(rng.sample(built.items, min(THREADS, len(built.items))), 1):
        id_ = choices.ident(project.id, "thread", number)
        talked = tuple(_comment(id_, place, people, rng, past) for place in range(rng.randint(1, 3)))
        document = next(one for one in project.documents if one.document_id == item.sheet_id)
        yield records.Thread(
            id=id_,
            project_id=project.id,
            workspace_id=project.workspace_id,
            thread_number=number,
            status=rng.choice((0, 0, 1)),
            created_by_id=talked[0].created_by_id,
            modified_by_id=talked[-1].modified_by_id,
            created_at=talked[0].created_at,
            modified_at=talked[-1].modified_at,
            context=records.Context(document_id=document.document_id, object_id=item.id),
            document_name=document.document_name,
            assigned_to_id=rng.choice(people).id,
            comments=talked,
        )


def _comment(
    thread_id: str, place: int, people: Sequence[records.User], rng: random.Random, past: moments.Past
) -> records.Comment:
    author, when = rng.choice(people).id, past.ago(30 - 8 * place)
    return records.Comment(
        comment_id=choices.ident(thread_id, "comment", place),
        text=rng.choice(blueprints.REMARKS),
        created_by_id=author,
        modified_by_id=author,
        created_at=when,
        modified_at=when,
    )


def tasks(
    workspace: records.Workspace,
    project: records.Project,
    people: Sequence[records.User],
    rng: random.Random,
    past: moments.Past,
) -> Iterator[records.Task]:
    """What is still to be done for a project."""
    for number, (name, description) in enumerate(blueprints.TASKS, 1):
        author, when = rng.choice(people).id, past.ago(25)
        yield records.Task(
            id=choices.ident(project.id, "task", number),
            workspace_id=workspace.id,
            ref_id=f"{''.join(word[0] for word in project.name.split())}-{number}",
            name=name,
            description=description,
            priority=rng.choice(("LOW", "MEDIUM", "HIGH")),
            status=rng.choice(("TO_DO", "TO_DO", "IN_PROGRESS", "RESOLVED")),
            assignee_id=rng.choice(people).id,
            created_by_id=author,
            modified_by_id=author,
            created_at=when,
            modified_at=when,
            project_id=project.id,
        )
