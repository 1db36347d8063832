"""Twelve checks of an installation, from the configuration to the plan of each application. They cost no parts."""

from proxy.doctor import machine, network, upstream
from proxy.doctor.check import Checks

CHECKS: Checks = {
    "configuration": ("", machine.configuration),
    "dns": ("configuration", network.dns),
    "tls": ("dns", network.tls),
    "token": ("tls", upstream.token),
    "scope": ("token", upstream.scope),
    "plan": ("scope", upstream.plan),
    "schema": ("scope", upstream.schema),
    "order": ("scope", upstream.order),
    "store": ("configuration", machine.store),
    "clock": ("tls", network.clock),
    "ports": ("configuration", machine.listening),
    "disk": ("configuration", machine.disk),
}
