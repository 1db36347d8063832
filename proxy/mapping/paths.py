"""Parser of paths in mapping files, such as `sellers(includeBrokers: true).offers.prices{quantity price}`.

Dots are short for nested selections; the rest is GraphQL and is parsed as such. The compiler is the only user.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import graphql


class PathError(ValueError):
    """The text is not a valid path; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Step:
    """One field of a path: its name, its printed arguments, and the selection in braces below a last step."""

    name: str
    arguments: str = ""
    below: tuple["Step", ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """Parsed path. `origin` is "here", "above" (`^`) or "context" (`$`, then `steps` is the one name)."""

    origin: str
    steps: tuple[Step, ...]


@lru_cache(maxsize=4096)
def parse(text: str) -> Route:
    """Parse a path. Cached, because every projection parses the same paths. Raises PathError."""
    if text.startswith("$"):
        return Route("context", (Step(text[1:]),))
    origin, below = ("above", text[1:]) if text.startswith("^") else ("here", text)
    if below in ("", "."):
        return Route(origin, ())
    steps = tuple(_step(_field(segment, text)) for segment in _segments(below))
    # Braces end a path: what is selected in them is read by a transform, not by further steps.
    if any(step.below for step in steps[:-1]):
        raise PathError(f"{text!r} is not a path: only its last step can have braces")
    return Route(origin, steps)


def _segments(text: str) -> list[str]:
    """Split a path at its dots, except those inside parentheses and braces."""
    cuts, depth = [-1], 0
    for position, char in enumerate(text):
        depth += (char in "({") - (char in ")}")
        if char == "." and depth == 0:
            cuts.append(position)
    return [text[a + 1 : b] for a, b in pairwise([*cuts, len(text)])]


def _field(segment: str, text: str) -> graphql.FieldNode:
    try:
        # Parsed as a document of one field, so that arguments and braces need no grammar of their own.
        document = graphql.parse("{" + segment + "}", no_location=True)
    except graphql.GraphQLError as error:
        raise PathError(f"{text!r} is not a path: {error.message}") from error
    match document.definitions[0]:
        case graphql.OperationDefinitionNode(selection_set=graphql.SelectionSetNode(selections=(field,))) if isinstance(
            field, graphql.FieldNode
        ):
            return field
    raise PathError(f"{text!r} is not a path: {segment!r} is more than one field")


def _step(node: graphql.FieldNode) -> Step:
    arguments = ", ".join(graphql.print_ast(argument) for argument in node.arguments or ())
    selections = node.selection_set.selections if node.selection_set else ()
    below = tuple(_step(child) for child in selections if isinstance(child, graphql.FieldNode))
    return Step(node.name.value, f"({arguments})" if arguments else "", below)
