"""A command in a terminal of another program, such as tmux, as a fork: ``python attached.py SOCKET WORDS``.

This process asks ``tests.forks`` for the command, on its own streams, and ends with it. It loads few modules.
"""

import json
import os
import socket
import sys


def main() -> int:
    """Run the command and return its exit code."""
    asked = {"words": sys.argv[2:], "env": dict(os.environ), "cwd": os.getcwd(), "kind": "box"}  # noqa: PTH109
    with socket.socket(socket.AF_UNIX) as connection:  # which the other process kills the command without
        connection.connect(sys.argv[1])
        socket.send_fds(connection, [json.dumps(asked).encode() + b"\n"], [0, 1, 2])
        told = connection.makefile("rb")
        told.readline()
        code = int(told.readline() or b"1")
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
