"""The command line: arguments in, exit code out, one file a command. It alone may start the sandbox."""
