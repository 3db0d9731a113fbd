"""GPU kernel-level performance analysis."""
