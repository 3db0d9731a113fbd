"""Trace → table; one module per question."""
