"""A profiler's file → Trace; one module a format."""
