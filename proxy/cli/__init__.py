"""Command line: one module per command, from arguments to exit code. The only package that may start the sandbox."""
