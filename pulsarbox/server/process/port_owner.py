"""Which process stands in the way, as far as the system tells this user."""

from pathlib import Path

_COMMAND_MAX = 100
_OUR_OWN = (b"--log-to", b"--report-to")
"""Options with which a start in the background calls itself; each has a value."""


def described(pid: int) -> str:
    """A process with its command, for a message on one line."""
    if not pid:
        return "a process unknown here"
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:  # it is gone, or of another container
        return f"process {pid}"
    command = " ".join(word.decode(errors="replace") for word in as_typed(words))
    command = "".join(one if one.isprintable() else "?" for one in command)
    cut = command if len(command) <= _COMMAND_MAX else command[: _COMMAND_MAX - 3] + "..."
    return f"process {pid} ({cut})" if cut else f"process {pid}"


def as_typed(words: list[bytes]) -> list[bytes]:
    """A box of ours as somebody would have started it; any other command as it is."""
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
    """The pid of a process that listens on a TCP port; 0 where there is none, or it is hidden from this user."""
    import psutil  # for those only who meet a port that is taken

    try:
        connections = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return 0
    for each in connections:
        if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr.port == port:
            return each.pid or 0
    return 0
