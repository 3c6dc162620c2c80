"""A dashboard without a terminal: styles are parsed once, and only frames that a test looks at are painted."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch
from weakref import WeakKeyDictionary

from rich.console import RenderableType
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.app import App, ScreenStackError
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.strip import Strip

_parsed: Final[dict[tuple[Any, ...], list[RuleSet]]] = {}
"""Rules of each style source, by the source and the variables. Textual keeps them per application."""
_PARSED_MAX: Final = 5_000
_variables: Final[WeakKeyDictionary[Stylesheet, tuple[dict[str, str], frozenset[tuple[str, str]]]]] = (
    WeakKeyDictionary()
)
"""The variables of each stylesheet as the key of its rules, made anew when it gets other variables."""
_parse = Stylesheet._parse_rules
_render = Compositor.render_update


@contextmanager
def savings(*, every_frame: bool) -> Iterator[None]:
    """Share parsed styles between applications and, unless ``every_frame``, paint only on :func:`paint`."""
    render = _render if every_frame else _postpone
    with patch.object(Stylesheet, "_parse_rules", _parse_once), patch.object(Compositor, "render_update", render):
        yield


def paint(app: App[Any]) -> None:
    """Paint what has changed on the current screen, as Textual does up to sixty times per second."""
    try:
        screen = app.screen
    except ScreenStackError:  # the application has ended
        return
    if app.is_running:
        with app._context():
            _render(screen._compositor, screen_stack=app._background_screens)


def strips(app: App[Any]) -> list[Strip]:
    """Return the lines of the current screen.

    Textual passes the screens below a dialog in a context variable, which it sets only for updates of a terminal.
    Without it, the background of the dialog would be drawn empty, and stay so.
    """
    visible_screen_stack.set(app._background_screens)
    return app.screen._compositor.render_strips()


def _parse_once(sheet: Stylesheet, *args: Any, **named: Any) -> list[RuleSet]:
    kept = _variables.get(sheet)
    if kept is None or kept[0] is not sheet._variables:
        kept = _variables[sheet] = sheet._variables, frozenset(sheet._variables.items())
    key = (args, tuple(named.items()), kept[1])
    if key not in _parsed:
        if len(_parsed) >= _PARSED_MAX:
            _parsed.clear()
        _parsed[key] = _parse(sheet, *args, **named)
    return _parsed[key]


def _postpone(compositor: Compositor, full: bool = False, **options: Any) -> RenderableType | None:
    """Keep the changed regions for :func:`paint`. A picture of the whole screen is painted."""
    return _render(compositor, full=True, **options) if full else None
