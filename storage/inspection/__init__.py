"""Offline inspection of a data directory: its contents, its integrity, and its records. Never writes.

Code that maps a file of LMDB runs in a child process (see `child`), because a damaged page can kill the process.
"""
