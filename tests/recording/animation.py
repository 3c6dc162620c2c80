"""One animated SVG of several screenshots of the same size, as Textual exports them.

Each element of the screenshots occurs once, in a group that is visible during its frames: most of a screen stays the
same from one frame to the next.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

_STYLE: Final = re.compile(r"\.(terminal-\d+-r\d+) \{ (.*?) \}")
_RECT: Final = re.compile(r'<rect fill="[^"]*" x="[^"]*" y="[^"]*" width="[^"]*" height="[^"]*"[^>]*/>')
_TEXT: Final = re.compile(
    r'<text class="(terminal-\d+-r\d+)" (x="[^"]*" y="[^"]*" textLength="[^"]*")[^>]*>(.*?)</text>'
)
_MATRIX: Final = re.compile(r'<g transform="translate\(([^)]*)\)" clip-path="[^"]*">')
_HEAD: Final = re.compile(r"\A(<svg [^>]*>).*?</defs>(.*?)<g transform=\"translate\([^)]*\)\" clip-path", re.DOTALL)
_IDS: Final = re.compile(r"terminal-\d+-")


class Frame(NamedTuple):
    """Elements of a screenshot, with their styles in full."""

    rects: frozenset[str]
    texts: frozenset[tuple[str, str, str]]
    """Style, position and text."""


def frame_of(svg: str) -> Frame:
    """Return the elements of a screenshot."""
    styles = dict(_STYLE.findall(svg))
    body = svg[svg.index("</defs>") :]
    texts = ((styles[name], place, text) for name, place, text in _TEXT.findall(body) if text.strip("\xa0 "))
    rects = _RECT.findall(body[_MATRIX.search(body).start() :])  # type: ignore[union-attr] # every screenshot has it
    return Frame(frozenset(rects), frozenset(texts))


def animated(screenshots: Sequence[str], seconds: float) -> str:
    """Return the animation, which repeats after ``seconds``. Viewers without animation show the first screenshot."""
    frames = [frame_of(each) for each in screenshots]
    classes: dict[str, str] = {}
    parts = [
        *_groups([each.rects for each in frames], seconds, str),
        *_groups([each.texts for each in frames], seconds, lambda text: _text(text, classes)),
    ]
    first = screenshots[0]
    head, window = _HEAD.search(first).groups()  # type: ignore[union-attr] # every screenshot has it
    styles = "".join(f".{name}{{{style}}}" for style, name in classes.items())
    font = "text{font-family:DejaVu Sans Mono,Fira Code,monospace;font-size:20px;white-space:pre}"
    shift = _MATRIX.search(first)[1]  # type: ignore[index] # as above
    window = re.sub(r"\s*\n\s*", "\n", _IDS.sub("", window)).strip()
    title = ".title{font-size:18px;font-weight:bold;font-family:arial}"
    body = "\n".join(parts)
    style = f"<style>{font}{title}{styles}</style>"
    return f'{head}\n{style}\n{window}\n<g transform="translate({shift})">\n{body}\n</g>\n</svg>\n'


def _groups(frames: Sequence[Collection[T]], seconds: float, drawn: Callable[[T], str]) -> Iterator[str]:
    """Yield a group per set of frames, with the elements that are in exactly these frames."""
    seen: dict[T, list[int]] = {}
    for number, elements in enumerate(frames):
        for each in elements:
            seen.setdefault(each, []).append(number)
    together: dict[tuple[int, ...], list[str]] = {}
    for element, numbers in seen.items():
        together.setdefault(tuple(numbers), []).append(drawn(element))
    for shown, parts in sorted(together.items()):
        yield f"<g{_visibility(shown, len(frames), seconds)}{''.join(sorted(parts))}</g>"


def _visibility(numbers: tuple[int, ...], count: int, seconds: float) -> str:
    """Return the end of a group's tag, and the animation of its visibility."""
    if len(numbers) == count:
        return ">"
    shown = [number in numbers for number in range(count)]
    changes = [at for at in range(count) if at == 0 or shown[at] != shown[at - 1]]
    values = ";".join("visible" if shown[at] else "hidden" for at in changes)
    times = ";".join(f"{at / count:.4f}".rstrip("0").rstrip(".") for at in changes)
    start = "" if shown[0] else ' visibility="hidden"'
    return (
        f'{start}><animate attributeName="visibility" calcMode="discrete" dur="{seconds:g}s" repeatCount="indefinite"'
        f' values="{values}" keyTimes="{times}"/>'
    )


def _text(text: tuple[str, str, str], classes: dict[str, str]) -> str:
    style, place, shown = text
    name = classes.setdefault(style, f"s{len(classes)}")
    return f'<text class="{name}" {place}>{shown}</text>'
