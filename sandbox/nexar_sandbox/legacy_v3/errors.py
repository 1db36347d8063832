"""Errors of the legacy service with the status and message that clients see (contract v3-rest.md §5)."""


class LegacyError(Exception):
    """A ClientErrorResponse or, from 500 on, a ServerErrorResponse."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def bad_request(message: str) -> LegacyError:
    return LegacyError(400, message)
