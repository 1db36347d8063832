"""Checks of this machine: configuration, store, ports and disk."""

import errno
import os
import shutil
import time
from collections import defaultdict

import aiohttp
import msgspec

from proxy import config, errors, sockets
from proxy.config import loader
from proxy.doctor.check import Problem, Subject
from proxy.gateway.core import Gateway
from proxy.kit.wording import counted
from proxy.web import status

STORE_BYTES = 50_000_000  # of the store itself, with room for its journal
SECONDS = aiohttp.ClientTimeout(5.0)  # that a service may take to give its state
SLOW_SECONDS = 0.25  # of a transaction


async def configuration(subject: Subject, _: str) -> str:
    """Read everything that `serve` reads at its start, and start the embedded sandbox where it is the upstream."""
    try:
        subject.settings = settings = loader.load(subject.file, subject.environ)
        if settings.upstream == "sandbox":
            subject.settings = settings = (await subject.start_sandbox(settings, subject.resources))[0]
        subject.gateway = await _gateway(subject)
    except errors.StartError as error:
        raise Problem(error.message, "correct it there; `v3bridge config --all` prints every setting") from error
    if exposed := " ".join(map(str, loader.exposed(subject.file))):
        raise Problem(f"other users can read {exposed}, which has secrets", f"chmod 600 {exposed}", is_warning=True)
    keys = sum(len(application.apikeys) for application in settings.applications.values())
    return f"{subject.file}: {counted(len(settings.applications), 'application')}, {counted(keys, 'API key')}"


async def _gateway(subject: Subject) -> Gateway:
    """Open the gateway on the store, or on one in memory. A store that does not exist is not made: it would belong to
    whoever runs the check."""
    settings = subject.settings
    try:
        file = settings.store.usable_file()
        if file is None or file.exists():
            return await Gateway.open(settings, subject.clock, subject.resources)
    except (errors.ConfigError, errors.StoreUnavailable) as error:  # of anything else it is raised again below
        subject.store_failure = error.message
    in_memory = msgspec.structs.replace(settings, store=config.StoreUrl("memory:"))
    return await Gateway.open(in_memory, subject.clock, subject.resources)


async def store(subject: Subject, _: str) -> str:
    """Try the store out, and say which client ids have their usage in it, by the ends of them: applications with one id
    share a limit."""
    url, file, names = subject.settings.store, subject.settings.store.file, defaultdict[str, list[str]](list)
    for name, application in subject.settings.applications.items():
        names[application.client_id or name].append(name)
    shared = (f"{' and '.join(each)} (client id …{client_id[-4:]})" for client_id, each in names.items())
    clients = f"usage of {', '.join(shared)}"
    if url.reveal() == "memory:":
        text = "in memory: usage and tokens are lost when the service stops"
        raise Problem(text, "set store: sqlite, or an address of Redis for several machines", is_warning=True)
    if subject.store_failure:
        advice = "check user, password and number in the address, that it is the primary: redis-cli -u ADDRESS ping"
        if file is not None:
            advice = "look at its owner, its disk and who uses it (ls -l, df, fuser); replace a damaged one by a backup"
        raise Problem(subject.store_failure, advice)
    if subject.gateway.settings.store != url:
        if file and not os.access(file.parent, os.W_OK | os.X_OK):
            raise Problem(f"{file} cannot be made", "let the user that runs v3bridge write to its folder (chown)")
        return f"{file} does not exist yet, the service will make it; {clients}"
    began = time.monotonic()
    await subject.gateway.check_store()
    seconds = time.monotonic() - began
    text = f"{file or url.shown}, writable, {seconds * 1000:.1f} ms a transaction; {clients}"
    if seconds > SLOW_SECONDS:
        raise Problem(text, "move it nearer: a local disk, or Redis in the same data center", is_warning=True)
    return text


async def listening(subject: Subject, _: str) -> str:
    """Bind the ports of clients and operators; they are free again at once."""
    settings = subject.settings
    places = {"listen": (settings.listen.host, settings.listen.port)}
    if settings.admin:
        places["admin"] = settings.admin.host, settings.admin.port
        if other := await _another(subject, settings.admin):
            place = sockets.shown(settings.admin.host, settings.admin.port)
            advice = f"give one of them another: {sockets.OPERATORS_OPTIONS}"
            raise Problem(f"{other}, is on the operators' port {place}", advice, is_warning=True)
    for block, (host, port) in places.items():
        try:
            sockets.check(host, port)
        except OSError as error:
            text = f"cannot listen on {host}:{port} ({block}): {error.strerror}"
            advice = f"if v3bridge does not run, end what listens there (ss -ltnp), or set {block}.host or {block}.port"
            raise Problem(text, advice, is_warning=error.errno == errno.EADDRINUSE) from error
    return f"{', '.join(f'{host}:{port}' for host, port in places.values())} can be listened on"


async def _another(subject: Subject, admin: config.AdminSettings) -> str:
    """Return which other v3bridge is on the operators' port; "" if none is, or the service itself."""
    headers = {"Authorization": f"Bearer {admin.token.reveal()}"} if admin.token else {}
    url = f"http://{sockets.shown(admin.host, admin.port)}/status"
    try:
        # In a session of its own: `upstream.proxy` must not see the token.
        async with aiohttp.ClientSession(timeout=SECONDS) as session, session.get(url, headers=headers) as response:
            if "v3bridge" in response.headers.get("WWW-Authenticate", ""):
                return "a v3bridge with another admin.token, perhaps another one"
            return status.another(await response.json(), subject.settings)
    except (aiohttp.ClientError, OSError, ValueError, TypeError, LookupError):  # nothing, or no v3bridge
        return ""


async def disk(subject: Subject, _: str) -> str:
    """Compare the free space with what the store may grow by."""
    file = subject.settings.store.file
    if file is None:
        return "the store is not on this disk"
    folder = next(folder for folder in file.parents if os.access(folder, os.F_OK))  # False, too, where it is forbidden
    used = file.stat().st_size if os.access(file, os.F_OK) else 0
    free, needed = shutil.disk_usage(folder).free, max(0, STORE_BYTES + subject.settings.cache.bytes - used)
    text = f"{free / 1e6:,.0f} MB free in {folder}, the store may grow by {needed / 1e6:,.0f} MB"
    if free < needed:
        advice = "free space (df FOLDER), lower cache.bytes, or put it on another disk with store: sqlite:PATH"
        raise Problem(text, advice, is_warning=True)
    return text
