"""`python -m nexar_sandbox`."""

from nexar_sandbox.command import main

if __name__ == "__main__":
    main()
