"""What the failure of an operation says: whether it may be billed, and whether the upstream is down. Pure."""

from proxy import errors, model


def may_be_billed(error: errors.BridgeError) -> bool:
    """Return whether parts may have been billed without data: of a refused operation unless all its errors are of
    validation."""
    if isinstance(error, errors.QueryRefused):
        return not all(map(_is_validation, error.reported))
    return isinstance(error, errors.ServerError) and error.may_be_billed


def is_outage(error: errors.BridgeError) -> bool:
    """Return whether the upstream fails, as opposed to a query that it refuses or a quota that is exhausted."""
    refused = isinstance(error, errors.QueryRefused | errors.OversizedOperation)
    return not refused and isinstance(error, errors.ServerError | errors.TooManyRequests)


def _is_validation(error: model.GraphQLError) -> bool:
    return error.path is None or "specifiedBy" in (error.extensions or {})
