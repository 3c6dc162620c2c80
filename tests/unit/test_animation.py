"""Animations of screenshots: every element once, visible in its frames."""

import io
import re
from pathlib import Path
from xml.etree import ElementTree as ET

from rich.console import Console

from tests.recording.animation import animated, frame_of

RECORDING = Path(__file__).parents[2] / "docs" / "pictures" / "recording.svg"


def screenshot(*lines: str) -> str:
    console = Console(record=True, width=30, height=4, force_terminal=True, file=io.StringIO())
    for line in lines:
        console.print(line)
    return console.export_svg(title="it", unique_id=f"terminal-{abs(hash(lines))}")


def groups(svg: str) -> list[tuple[str, str]]:
    """Return the values of each group's animation, with the texts in it."""
    found = re.findall(r"<g([^>]*)>(<animate [^>]*/>)?((?:<rect[^>]*>|<text.*?</text>)+)</g>", svg)
    values = [re.search(r'values="([^"]*)"', animate) for _, animate, _ in found]
    texts = ["".join(re.findall(r">([^<]*)</text>", body)) for _, _, body in found]
    return [(value[1] if value else "", text) for value, text in zip(values, texts, strict=True) if text]


def test_an_element_is_visible_in_its_frames() -> None:
    frames = [screenshot("stays", "one"), screenshot("stays", "[bold]two"), screenshot("stays", "one")]
    svg = animated(frames, 3)
    assert sorted(groups(svg)) == [("", "stays"), ("hidden;visible;hidden", "two"), ("visible;hidden;visible", "one")]
    assert 'keyTimes="0;0.3333;0.6667"' in svg
    assert svg.count("stays") == 1
    ET.fromstring(svg)


def test_styles_of_equal_name_differ_between_frames() -> None:
    svg = animated([screenshot("[red]a"), screenshot("[green]a")], 2)
    classes = re.findall(r'<text class="(s\d+)"', svg)
    assert len(set(classes)) == 2


def test_blank_text_is_left_out() -> None:
    assert {text for _, _, text in frame_of(screenshot("a", "   ", "b")).texts} == {"a", "b"}


def test_the_recording_is_small_complete_and_loads_nothing() -> None:
    svg = RECORDING.read_text("utf-8")
    assert len(svg.encode()) < 1_000_000
    assert 'dur="20s"' in svg
    assert re.findall(r"(?:href|src|url)\s*[=(]\s*['\"]?https?:", svg) == []
    ET.fromstring(svg)
