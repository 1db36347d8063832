"""Test of the system's clock: monotonic time goes on while the machine is suspended."""

import subprocess
import sys

import pytest

SUSPENDED = 100_000
PROGRAM = "import time; from proxy.kit import clock; print(clock.SystemClock().monotonic() - time.monotonic())"


def test_monotonic_time_counts_suspends() -> None:
    as_if_suspended = ["unshare", "-Ur", "--fork", "--time", "--boottime", str(SUSPENDED)]
    if subprocess.run([*as_if_suspended, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a time namespace is not permitted")
    ahead = subprocess.run([*as_if_suspended, sys.executable, "-c", PROGRAM], capture_output=True, check=True).stdout
    assert float(ahead) == pytest.approx(SUSPENDED, abs=1)
