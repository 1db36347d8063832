"""What the old service refuses, with the status and the words that a client sees (contract v3-rest.md §5)."""


class Refusal(Exception):  # noqa: N818 (it is an answer, not a fault)
    """A ClientErrorResponse or, from 500 on, a ServerErrorResponse."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def bad(message: str) -> Refusal:
    """A request that cannot be understood."""
    return Refusal(400, message)
