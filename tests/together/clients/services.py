"""Services that the clients are run against, as arguments of `v3bridge`: the proxy, and the sandbox's old v3
service."""

import pytest

PROXY, OLD_SERVICE = ("serve",), ("sandbox", "--legacy-rate", "0")

# Put on a test file: it runs against each. What only the proxy has to say is in files without it.
both = pytest.mark.parametrize("proxy_url", [PROXY, OLD_SERVICE], ids=["new", "old"], indirect=True, scope="module")
proxy = pytest.mark.parametrize("proxy_url", [PROXY], ids=["new"], indirect=True, scope="module")
