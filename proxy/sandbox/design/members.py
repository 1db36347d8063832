"""Who may sign in to the sandbox, as the workspaces have people."""

from proxy.sandbox import user_directory
from proxy.sandbox.design import records


def of(known: user_directory.UserDirectory) -> tuple[records.User, ...]:
    """Everybody."""
    return tuple(
        records.User(
            id=one.id,
            user_name=one.email.partition("@")[0],
            email=one.email,
            first_name=one.given_name,
            last_name=one.family_name,
        )
        for one in known.all
    )
