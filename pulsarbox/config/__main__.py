"""``python -m pulsarbox.config [toml|markdown]`` prints the settings; ``--write`` writes the checkout's files."""

import sys
from pathlib import Path

from pulsarbox.config.document import as_markdown, as_toml
from pulsarbox.config.sources.pulsar_files import text_of

WRITERS = {"toml": as_toml, "markdown": as_markdown}


def main(arguments: list[str]) -> int:
    """Return the exit code: 0, or 2 for unknown arguments."""
    if arguments == ["--write"]:
        Path("pulsarbox.toml").write_text(as_toml(), encoding="utf-8")
        Path("docs", "configuration.md").write_text(as_markdown(), encoding="utf-8")
        for name in ("broker.conf", "standalone.conf"):
            Path("image", "conf", name).write_text(text_of(name), encoding="utf-8")
        return 0
    wanted = arguments or ["toml"]
    if len(wanted) != 1 or wanted[0] not in WRITERS:
        sys.stderr.write("usage: python -m pulsarbox.config [toml | markdown | --write]\n")
        return 2
    sys.stdout.write(WRITERS[wanted[0]]())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
