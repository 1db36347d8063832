"""Who may use the sandbox: applications with credentials, a part allowance and the features of their plan.

Handed in through the settings; the identity service, the query service and the accounting read them. Nobody
changes them.
"""

from dataclasses import dataclass

SUPPLY_SCOPE = "supply.domain"
# SupNexarFeatureID, contract graphql.md §1.3.
FEATURES = frozenset(
    {
        "LEAD_TIME",
        "LIFECYCLE",
        "DATASHEETS",
        "TECH_SPECS",
        "CAD_MODELS",
        "SIMILAR_PARTS",
        "SUGGESTIONS",
        "SPELLING_CORRECTIONS",
        "INVENTORY_HISTORY",
    }
)


@dataclass(frozen=True, slots=True)
class Account:
    """An application. `part_limit` is parts a calendar month, `application_id` a GUID."""

    name: str
    application_id: str
    client_id: str
    client_secret: str
    part_limit: int = 1000
    features: frozenset[str] = FEATURES
    scopes: tuple[str, ...] = (SUPPLY_SCOPE,)

    def __post_init__(self) -> None:
        unknown = self.features - FEATURES
        if unknown:
            raise ValueError(f"application {self.name}: unknown features {sorted(unknown)}")
        if self.part_limit < 0:
            raise ValueError(f"application {self.name}: part_limit must not be negative, it is {self.part_limit}")

    def __repr__(self) -> str:
        return f"Account({self.name!r}, application_id={self.application_id!r})"


# The account that is there when nobody hands one in. A sandbox guards nothing, so its secret may be known.
READY = Account(
    "Sandbox application",
    "8c0f6d3e-51f4-4a8e-9f0b-2f7d5f1d9a01",
    "11111111-1111-4111-8111-111111111111",
    "sandbox-secret-22222222222222222222",
)


class Accounts:
    """Accounts by client id and by application id."""

    def __init__(self, accounts: tuple[Account, ...]) -> None:
        self.all = accounts
        self._by_client = {account.client_id: account for account in accounts}
        self._by_application = {account.application_id.lower(): account for account in accounts}
        if not accounts or len(self._by_client) != len(accounts) or len(self._by_application) != len(accounts):
            raise ValueError("accounts must not be empty, and client ids and application ids must differ")

    def by_client(self, client_id: str) -> Account | None:
        """The account with this client id."""
        return self._by_client.get(client_id)

    def by_application(self, application_id: str) -> Account | None:
        """The account with this application id, in either case of letters (it is a GUID)."""
        return self._by_application.get(application_id.lower())
