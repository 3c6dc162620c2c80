"""Identification of the process that holds a port, as far as this user may see it."""

from pathlib import Path

_COMMAND_MAX = 100
_OUR_OWN = (b"--log-to", b"--report-to")
"""Internal options of a background start; each has a value."""


def described(pid: int) -> str:
    """Describe a process with its command, for a one-line message."""
    if not pid:
        return "a process unknown here"
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:  # it has ended, or runs in another container
        return f"process {pid}"
    command = " ".join(word.decode(errors="replace") for word in as_typed(words))
    command = "".join(one if one.isprintable() else "?" for one in command)
    cut = command if len(command) <= _COMMAND_MAX else command[: _COMMAND_MAX - 3] + "..."
    return f"process {pid} ({cut})" if cut else f"process {pid}"


def as_typed(words: list[bytes]) -> list[bytes]:
    """Return the command of a box as a user would type it; other commands are unchanged."""
    if words[1:4] != [b"-m", b"pulsarbox", b"start"]:
        return words
    kept = [b"pulsarbox", b"start"]
    rest = iter(words[4:])
    for word in rest:
        if word in _OUR_OWN:
            next(rest, b"")
        else:
            kept.append(word)
    return kept


def listener(port: int) -> int:
    """Return the pid of a process that listens on a TCP port; 0 if there is none, or if it is hidden from this user."""
    import psutil  # imported only after a port conflict

    try:
        connections = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return 0
    for each in connections:
        if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr.port == port:
            return each.pid or 0
    return 0
