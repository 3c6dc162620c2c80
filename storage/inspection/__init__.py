"""Looking into a data directory from outside: what is in it, whether it is whole, and its records. Never writes.

Whatever maps a file of LMDB runs in a child process (see child), as a damaged page can end the process that reads it.
"""
