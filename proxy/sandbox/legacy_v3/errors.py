"""What the old service refuses, with the status and the words that a client sees (contract v3-rest.md §5)."""


class LegacyError(Exception):
    """A ClientErrorResponse or, from 500 on, a ServerErrorResponse."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def bad_request(message: str) -> LegacyError:
    """A request that cannot be understood."""
    return LegacyError(400, message)
