"""Speed and memory of the main job beside those of its peers: ``python benchmarks/run.py``."""
