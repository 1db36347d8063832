"""The service of workspaces and people. Read only: who may sign in is the identity service's business."""

from collections.abc import Mapping
from typing import Any

from proxy.sandbox.design import rest
from proxy.sandbox.design.tables import Table


class Workspaces(rest.Service):
    """Workspaces, and users by workspace."""

    name = "workspaces"

    def tables(self) -> Mapping[str, Table[Any]]:
        """Workspaces and users."""
        data = self.held.data
        return {"workspaces": data.workspaces, "users": data.users}
