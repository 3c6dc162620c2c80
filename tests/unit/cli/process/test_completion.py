"""The completion script in a real bash with Readline: words with colons, equal signs, quotes and spaces."""

import os
import pty
import select
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsarbox.cli.main import main

BASH = shutil.which("bash") or ""
pytestmark = pytest.mark.skipif(not BASH, reason="requires bash")
_SECONDS = 60.0


def completed(tmp_path: Path, line: str, *offered: str) -> tuple[list[str], str]:
    """Return the words that the script asks to complete for a line and the tab key, and the line that bash then has.

    A stand-in for pulsarbox records the words and offers these candidates.
    """
    (tmp_path / "script.bash").write_text(CliRunner().invoke(main, ["completion", "bash"]).output)
    (tmp_path / "offered").write_text("".join(f"plain,{each}\n" for each in offered))
    stub = tmp_path / "pulsarbox"
    stub.write_text(
        f"""#!{BASH}
if [[ ${{_PULSARBOX_COMPLETE-}} ]]; then
    printf '%s' "$COMP_WORDS" > {tmp_path}/asked
    while IFS= read -r each; do echo "$each"; done < {tmp_path}/offered
else
    printf '%s\\n' "$@" > {tmp_path}/called.part
    echo ended >> {tmp_path}/called.part
    mv {tmp_path}/called.part {tmp_path}/called
fi
"""
    )
    stub.chmod(0o755)
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(PATH=f"{tmp_path}:{os.environ['PATH']}", TERM="dumb", HOME=str(tmp_path), INPUTRC="/dev/null")
        os.execv(BASH, [BASH, "--norc", "--noprofile", "-i"])
    try:
        os.write(terminal, f"source {tmp_path}/script.bash\n{line}\t\n".encode())
        limit = time.monotonic() + _SECONDS
        while not (tmp_path / "called").exists() and time.monotonic() < limit:
            if select.select([terminal], [], [], 0.05)[0]:
                os.read(terminal, 65536)
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    return (tmp_path / "asked").read_text().split("\n"), (tmp_path / "called").read_text()


@pytest.mark.parametrize(
    ("line", "asked", "offered", "called"),
    [
        ("topic stats or", ["topic", "stats", "or"], ["orders"], ["topic", "stats", "orders"]),
        (
            "topic stats persistent://public/default/or",
            ["topic", "stats", "persistent://public/default/or"],
            ["persistent://public/default/orders"],
            ["topic", "stats", "persistent://public/default/orders"],
        ),
        (
            "topic stats persistent:",
            ["topic", "stats", "persistent:"],
            ["persistent://public/default/orders"],
            ["topic", "stats", "persistent://public/default/orders"],
        ),
        (
            "consume --url=pulsar://h:6650 a:b ",
            ["consume", "--url=pulsar://h:6650", "a:b", ""],
            ["orders"],
            ["consume", "--url=pulsar://h:6650", "a:b", "orders"],
        ),
        (
            "produce orders --rate=1",
            ["produce", "orders", "--rate=1"],
            ["100/s"],
            ["produce", "orders", "--rate=100/s"],
        ),
        (
            "topic policy orders publish-rate publishThrottlingRateInMsg=1",
            ["topic", "policy", "orders", "publish-rate", "publishThrottlingRateInMsg=1"],
            ["publishThrottlingRateInMsg=10"],
            ["topic", "policy", "orders", "publish-rate", "publishThrottlingRateInMsg=10"],
        ),
        (
            "events --filter 'kind == \"job-d",
            ["events", "--filter", "'kind == \"job-d"],
            ['kind == "job-done"'],
            ["events", "--filter", 'kind == "job-done"'],
        ),
        ("events --filter ki", ["events", "--filter", "ki"], ["kind == 1"], ["events", "--filter", "kind == 1"]),
    ],
)
def test_a_line_is_completed(
    tmp_path: Path, line: str, asked: list[str], offered: list[str], called: list[str]
) -> None:
    words, ran = completed(tmp_path, f"pulsarbox {line}", *offered)
    assert words == ["pulsarbox", *asked]
    assert ran.splitlines() == [*called, "ended"]
