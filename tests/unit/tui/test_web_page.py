"""The page has the width of a phone, a bar of keys that a terminal sends, and no resources of its own."""

import json
import re
from html.parser import HTMLParser

from pulsarbox.tui.web_page import KEYS, with_touch

PAGE = (
    "<!DOCTYPE html><html><head><script src='textual.js'></script></head><body><div id='terminal'></div></body></html>"
)


class _Seen(HTMLParser):
    """Tags with their attributes, in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_has_the_width_of_the_device() -> None:
    views = [more["content"] for tag, more in _Seen(with_touch(PAGE)).tags if more.get("name") == "viewport"]
    assert len(views) == 1 and views[0] is not None and views[0].startswith("width=device-width")


def test_the_bar_sends_what_keys_send() -> None:
    buttons = [more for tag, more in _Seen(with_touch(PAGE)).tags if tag == "button"]
    assert [json.loads(more["data-key"] or "") for more in buttons if "data-key" in more] == [sent for _, sent in KEYS]
    assert sum("data-keyboard" in more for more in buttons) == 1


def test_connections_are_watched_before_the_first_one_and_nothing_is_loaded() -> None:
    page = with_touch(PAGE)
    assert page.index("extends WebSocket") < page.index("textual.js") < page.index('id="keys"')
    assert not re.findall(r"https?://", page)
    assert [more["src"] for _, more in _Seen(page).tags if "src" in more] == ["textual.js"]
