"""Command line: one module per command, from arguments to exit code. The only package that may start the sandbox."""

SERVE = "V3BRIDGE_SERVE"  # variable with the options of `serve`, once they are read
