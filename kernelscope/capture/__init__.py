"""Running programs under NVIDIA's profilers, and finding out what of them works here."""
