"""Known-answer traces: schema-accurate exports whose answers come from the plan of the run."""
