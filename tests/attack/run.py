"""``python -m tests.attack.run``: all attacks at full size; exits with 1 if the broker fails one."""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.attack import floods, neighbours, schemas, tokens, web, websockets, wire
from tests.attack.victim import Broken, Victim

Attack = Callable[[Victim], str | None]

ATTACKS: Final[tuple[Attack, ...]] = (
    *(wire.lengths, wire.large_frames_before_connect, wire.garbage, wire.counts, wire.bombs, schemas.schemas),
    *(web.paths, web.numbers, web.heads, tokens.tokens),
    *(websockets.handshakes, websockets.frames, websockets.messages, websockets.pings, websockets.unread),
    *(neighbours.cross_site, neighbours.file_modes),
    *(floods.wrong_ports, floods.half_open, floods.slow, floods.not_reading, floods.hangups, floods.crowd),
)


def attack(victim: Victim, each: Attack) -> str:
    """Run one attack and return its summary. Raises Broken."""
    victim.check()
    files, before, sent, began = victim.files, victim.memory, victim.good.sent, time.monotonic()
    victim.good.slowest = 0.0
    try:
        said = each(victim)
    except AssertionError as error:
        raise Broken(str(error)) from error
    victim.check()
    victim.wait_for(lambda: victim.files <= files + 20, f"descriptors are given back: {victim.files} of {files}")
    seconds, stored = time.monotonic() - began, victim.good.sent - sent
    return (
        f"{each.__name__:<28} {seconds:5.1f} s  memory {before >> 20} -> {victim.memory >> 20} MiB  "
        f"good client: {stored} stored, the slowest after {victim.good.slowest * 1000:.0f} ms"
        + (f"  {said}" if said else "")
    )


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.run", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, metavar="X", help="part of the full size (default: 1)")
    parser.add_argument("--only", metavar="NAME", help="one attack: " + ", ".join(each.__name__ for each in ATTACKS))
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        try:
            with Victim(Path(folder), given.scale) as victim:
                for each in ATTACKS:
                    if given.only in (None, each.__name__):
                        sys.stdout.write(attack(victim, each) + "\n")
                        sys.stdout.flush()
                sys.stdout.write(f"memory at most {victim.peak >> 20} MiB; the good client stored {victim.good.sent}\n")
        except Broken as error:
            sys.stderr.write(f"{error}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
