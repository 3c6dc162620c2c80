"""Screenshots of the dashboard as SVG, from a box under a load that exercises all of it: ``make pictures``.

``python -m tests.tools.pictures FOLDER [WxH ...]``: a file per screen and size; without sizes, that of the docs pages.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pulsarbox.tui.app import Top
from pulsarbox.tui.feed import Feed, web_exchange
from pulsarbox.tui.once import self_contained
from tests.tools.box import BoxProcess
from tests.tools.demo_box import Load

SECONDS = 45.0
"""Duration of the load before the screenshots, so that graphs and trends have data."""
SIZE = (120, 36)
SHOTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "overview": ("overview", ()),
    "topics": ("topics", ()),
    "subscriptions": ("subscriptions", ("j",)),
    "subscription": ("subscriptions", ("enter",)),
    "quotas": ("quotas", ()),
    "quota-change": ("quotas", ("enter",)),
    "dead-letters": ("deadletters", ("enter",)),
    "replay": ("deadletters", ("enter", "R")),
    "browser": ("deadletters", ("enter", "enter")),
    "edit": ("deadletters", ("enter", "enter", "E")),
    "cursor-map": ("subscriptions", ("j", "m")),
    "key-map": ("subscriptions", ("slash", *"per-c", "enter", "K")),
    "clients": ("clients", ()),
    "storage": ("storage", ()),
    "plugins": ("plugins", ()),
    "events": ("events", ()),
    "jobs": ("jobs", ()),
    "pipelines": ("pipelines", ()),
    "pipeline": ("pipelines", ("j", "enter")),
    "actions": ("subscriptions", ("x",)),
    "help": ("subscriptions", ("question_mark",)),
}
"""Initial screen and keys to press, by file name."""


async def drawn(feed: Feed, size: tuple[int, int], place: str, keys: tuple[str, ...]) -> str:
    """Return a screenshot of one screen."""
    app = Top(feed, place=place)
    async with app.run_test(size=size) as pilot:
        await _answered(app, pilot)
        for key in keys:
            await pilot.press(key)
            await _answered(app, pilot)
        await pilot.pause(0.3)
        return self_contained(app.export_screenshot(title=f"pulsarbox top: {place}"))


async def _answered(app: Top, pilot: Any) -> None:
    for _ in range(200):
        screen: Any = app.screen
        if getattr(screen, "answered", True) or getattr(screen, "trouble", None):
            break
        await pilot.pause(0.05)
    await pilot.pause(0.1)


def main(folder: Path, sizes: list[tuple[int, int]]) -> None:
    """Draw all screens."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        box = BoxProcess(Path(data) / "data")
        box.start()
        load = Load(box.url, box.web_url)
        try:
            load.start()
            time.sleep(SECONDS)
            host, _, port = box.web_url.rpartition("/")[2].rpartition(":")
            feed = Feed(web_exchange([(host, int(port))]), box.web_url)
            for width, height in sizes or [SIZE]:
                for name, (place, keys) in SHOTS.items():
                    suffix = f"-{width}x{height}" if sizes else ""
                    path = folder / f"{name}{suffix}.svg"
                    path.write_text(asyncio.run(drawn(feed, (width, height), place, keys)) + "\n", "utf-8")
                    print(path)
        finally:
            load.stop()
            box.kill()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [(int(each.partition("x")[0]), int(each.partition("x")[2])) for each in sys.argv[2:]])
