"""The process's limit of open files, and how many client connections it allows."""

import resource

import structlog

from proxy import config
from proxy.web.connections import CHECKS_KEPT_OPEN

OWN_FILES = 64  # store, journal, libraries, sockets that listen, the connections of shadowing

log = structlog.get_logger()


def client_connections(settings: config.Config) -> int:
    """`listen.connections`, or as many as the open-file limit leaves, and at least 1.

    The soft limit is raised to the hard one first (RLIMIT_NOFILE). Files are kept free for connections to the upstream
    and for health checks, so that the process never runs out of them because of its clients.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    wanted = settings.listen.connections
    upstream = 0 if settings.upstream == "sandbox" else settings.upstream.connections
    reserved = OWN_FILES + CHECKS_KEPT_OPEN + upstream
    if hard == resource.RLIM_INFINITY or wanted + reserved <= hard:
        return wanted
    allowed = max(1, hard - reserved)
    log.warning("connection limit lowered", configured=wanted, used=allowed, open_files=hard, reserved=reserved)
    return allowed
