"""A recording of the dashboard on the sample traffic of `pulsarbox tour`, as an animated SVG (``make pictures``).

``python -m tests.recording.dashboard FILE``
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any, Final

from pulsarbox.cli.tour.tour import staged
from pulsarbox.tui.app import Top
from pulsarbox.tui.feed import Feed, web_exchange
from pulsarbox.tui.once import self_contained
from tests.recording.animation import animated

SIZE: Final = (100, 28)
SECONDS: Final = 20.0
FRAMES: Final = 40
WARM_UP_SECONDS: Final = 25.0
"""Traffic before the recording, so that graphs have data."""
KEYS: Final[dict[int, tuple[str, ...]]] = {
    10: ("3",), 13: ("j",), 15: ("enter",), 21: ("escape", "4"), 25: ("enter",), 30: ("escape", "5"), 35: ("1",),
}  # fmt: skip
"""Keys to press before a frame."""


async def recorded(feed: Feed) -> list[str]:
    """Return the screenshots."""
    app = Top(feed, place="overview")
    frames = []
    async with app.run_test(size=SIZE) as pilot:
        await _answered(app, pilot)
        begin = time.monotonic()
        for number in range(FRAMES):
            for key in KEYS.get(number, ()):
                await pilot.press(key)
                await _answered(app, pilot)
            frames.append(self_contained(app.export_screenshot(title="pulsarbox top")))
            await asyncio.sleep(max(begin + (number + 1) * SECONDS / FRAMES - time.monotonic(), 0.01))
    return frames


async def _answered(app: Top, pilot: Any) -> None:
    for _ in range(100):
        screen: Any = app.screen
        if getattr(screen, "answered", True) or getattr(screen, "trouble", None):
            break
        await pilot.pause(0.05)
    await pilot.pause(0.1)


def main(path: Path) -> None:
    """Record the dashboard."""
    with staged() as box:
        time.sleep(WARM_UP_SECONDS)
        host, _, port = box.admin_url.rpartition("/")[2].rpartition(":")
        frames = asyncio.run(recorded(Feed(web_exchange([(host, int(port))]), box.admin_url)))
    path.write_text(animated(frames, SECONDS), "utf-8")
    sys.stdout.write(f"{path}, {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
