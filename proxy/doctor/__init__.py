"""Twelve checks of an installation, from the configuration to the plan of each application. They cost no parts."""

from proxy.doctor import machine, upstream
from proxy.doctor.check import Check

CHECKS = {
    "configuration": Check("", machine.configuration),
    "dns": Check("configuration", upstream.dns),
    "tls": Check("dns", upstream.tls),
    "token": Check("tls", upstream.token, each=True),
    "scope": Check("token", upstream.scope, each=True),
    "plan": Check("scope", upstream.plan, each=True),
    "schema": Check("scope", upstream.schema, each=True),
    "order": Check("scope", upstream.order, each=True),
    "store": Check("configuration", machine.store),
    "clock": Check("tls", upstream.clock),
    "ports": Check("configuration", machine.listening),
    "disk": Check("configuration", machine.disk),
}
