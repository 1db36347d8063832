"""File of the SQLite store as the operating system has it: who uses it, and whether it is still as it was written.

Only SQLite opens the file itself: to close any other descriptor of it drops SQLite's locks, and the next process that
ends deletes the write-ahead log under the others. What locks its use is a file of its own beside it.
"""

import contextlib
import fcntl
import os
from pathlib import Path

from proxy import errors

LOG_BYTES = 64 * 2**20  # to which SQLite shortens the write-ahead log when it begins anew
RESTORE = "stop the service, restore the file from a backup, and start"


class StoreFile:
    """File at a path, or memory. If no other process uses it, this one `is_alone`, and others wait until it shares the
    file."""

    def __init__(self, path: Path | None, resources: contextlib.AsyncExitStack) -> None:
        """Make the file if it is missing, for its owner only: it has tokens. SQLite gives the files beside it its mode.
        `resources` let go of its lock in the end, after SQLite has closed it. Raises OSError and StoreUnavailable."""
        self.path, self.name, self.is_alone = path, ":memory:", True
        if path is None:
            return
        is_new = not path.exists()
        if not is_new and not path.is_file():
            raise errors.StoreUnavailable(f"{path} is a folder or a device; name a file")
        path.touch(0o600)
        path.chmod(0o600)
        self.name, found = str(path.resolve()), path.stat()
        self._names = str(path), f"{self.name}-wal"
        self._lock = os.open(f"{self.name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        resources.callback(os.close, self._lock)
        self._inode, self._bytes, self._log_bytes = (found.st_dev, found.st_ino), 0, 0
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(self._lock, fcntl.LOCK_SH)
            self.is_alone = False
        had_tables = os.fstat(self._lock).st_size > 0
        if had_tables and not is_new and path.stat().st_size == 0:
            raise errors.StoreUnavailable(f"{path} was truncated; {RESTORE}, or delete it to begin a new one")

    def share(self) -> None:
        """Let other processes use the file, which has its tables now."""
        if self.path:
            os.pwrite(self._lock, b"used\n", 0)
            fcntl.flock(self._lock, fcntl.LOCK_SH)

    def check(self) -> None:
        """Raise StoreUnavailable where SQLite would go on with a file that is gone or not as it was written."""
        if not self.path:
            return
        try:
            found, log = map(os.stat, self._names)
        except OSError as error:
            raise errors.StoreUnavailable(
                f"{error.filename} was deleted or cannot be reached ({error.strerror}); restart to begin a new file, "
                "and set the parts that are used with `v3bridge usage --set`"
            ) from error
        mistake = ""
        if (found.st_dev, found.st_ino) != self._inode:
            mistake = "was replaced; restart to use the new file"
        elif found.st_nlink > 1:
            mistake = "has a second name (a hard link), by which a program would destroy it; delete that name"
        elif found.st_size < self._bytes or log.st_size < min(self._log_bytes, LOG_BYTES):
            mistake = f"or its write-ahead log was truncated; {RESTORE}"
        if mistake:
            raise errors.StoreUnavailable(f"{self.path} {mistake}")
        self._bytes, self._log_bytes = found.st_size, log.st_size
