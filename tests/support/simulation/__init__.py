"""Simulated years of gateways: their event loops, the store, the upstream and the clocks follow a seed."""
