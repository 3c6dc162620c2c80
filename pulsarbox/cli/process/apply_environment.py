"""``apply-config-from-env.py`` of the container image."""

import argparse
import os
import sys
from pathlib import Path

from pulsarbox.cli.common.terminal_text import clean, notify
from pulsarbox.config.sources.environment_overlay import DEFAULT_PREFIX, applied


def main(arguments: list[str]) -> int:
    """Write settings from the environment into the named files. Return the exit code.

    A file without changes is not written, so it may be read-only.
    """
    parser = argparse.ArgumentParser(
        prog="apply-config-from-env.py", description="Write settings from the environment into configuration files."
    )
    parser.add_argument(
        "--prefix", default=DEFAULT_PREFIX, help="prefix of variables that set any key (default: %(default)s)"
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    for path in given.files:
        try:
            text, keys = applied(path.read_text(encoding="utf-8"), os.environ, given.prefix)
            if keys:
                path.write_text(text, encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            notify(f"{path}: {why}: make it writable (a tmpfs will do), or use PULSARBOX_<setting> variables instead")
            return 1
        for key in keys:  # not the values: some are secrets
            print(f"[{path}] Applying config {clean(key)}", file=sys.stderr)
    return 0
