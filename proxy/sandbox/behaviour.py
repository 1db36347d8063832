"""Behaviour of the simulated services where the real ones may differ: the defaults are the contract's."""

from dataclasses import dataclass

from proxy.sandbox.supply_behaviour import SupplyBehaviour


@dataclass(frozen=True, slots=True)
class Behaviour(SupplyBehaviour):
    """One field for each behaviour that can be changed, in the order of the contract's sections.

    `unauthorized_status` is the HTTP status of a missing, invalid or expired token (contract graphql.md §3.2).
    """

    unauthorized_status: int = 401
