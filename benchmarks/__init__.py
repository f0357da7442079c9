"""Measurements of kafkalite: `python -m benchmarks`. No tests: times depend on the machine."""
