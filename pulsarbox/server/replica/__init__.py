"""Replicas: the connection of a box to a data directory on another machine, and the process that serves one.

Both sides run in threads of their own, because a sync takes as long as many messages. The values that they exchange are
in ``storage/ensemble/remote``. Nothing here is imported by a box without replicas.
"""
