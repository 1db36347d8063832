"""`python -m proxy` is `v3bridge`."""

from proxy.cli.main import main

main()
