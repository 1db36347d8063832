"""Staged checks of an installation, from the configuration to the plan of each application. Costs no parts."""
