"""The process environment of the daemon: limits, logging, signals, the runtime file, free disk space.

May import psutil and the operating system's interfaces. Must not import the broker.
"""
