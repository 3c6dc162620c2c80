"""Programs that measure one row each: through a client (`go`, `python_driver`), or over the bare protocol (`raw_*`).

Each reads a job from stdin and prints figures as JSON. May import pulsarbox and the measurements of the store beside
this room. Must not compare brokers or print tables: that is `benchmarks.bench`.
"""
