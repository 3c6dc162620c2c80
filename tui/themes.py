"""Our themes, in addition to those of Textual. Colour must carry no information of its own.

Two themes of Textual for the colors of the terminal are replaced. Their blue on black, bright red for warnings and
green on white are hard to read in the usual palettes.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from pulsarbox.tui.widgets.box_label import Label, contrast
from pulsarbox.tui.widgets.styles import least_contrast, theme_color

_HERE_ANSI: Final = {"here-background": "ansi_cyan", "here-foreground": "ansi_black"}
_SCROLLBAR_ANSI: Final = {
    "scrollbar": "ansi_bright_black",
    "scrollbar-hover": "ansi_white",
    "scrollbar-active": "ansi_white",
    "scrollbar-background": "ansi_default",
    "scrollbar-background-hover": "ansi_default",
    "scrollbar-background-active": "ansi_default",
}


def _scrollbar(bar: str, ground: str) -> dict[str, str]:
    """Return the colors of scrollbars. By default, their background is darker than that of the panel."""
    grounds = {f"scrollbar-background{state}": ground for state in ("", "-hover", "-active")}
    return {"scrollbar": bar, "scrollbar-corner-color": ground, **grounds}


DARK: Final = Theme(
    name="pulsarbox",
    primary="#5BA4E6",
    secondary="#B48EE8",
    accent="#F4DC62",
    foreground="#D5DAE3",
    background="#10141B",
    surface="#151A23",
    panel="#1E2531",
    success="#6CC58A",
    warning="#F59642",
    error="#F26D78",
    dark=True,
    variables={
        "block-cursor-background": "#254362",
        "block-cursor-foreground": "#FFFFFF",
        "blurred-background": "#1C3045",
        "here-background": "#2F5D90",
        "here-foreground": "#FFFFFF",
        "footer-key-foreground": "#F4DC62",
        "text-disabled": "#8F96A2",
        "text-primary": "#7DB9F0",
        "text-secondary": "#C6A8F0",
        "text-accent": "#F4DC62",
        "text-success": "#76D096",
        "text-warning": "#FFA24D",
        "text-error": "#FF8C95",
        "edge": "#34465E",
        "edge-focus": "#5BA4E6",
        "field-edge": "#587393",
        **_scrollbar("#4A6484", "#1E2531"),
    },
)
LIGHT: Final = Theme(
    name="pulsarbox-light",
    primary="#1A62A5",
    secondary="#7A4FB5",
    accent="#006B76",
    foreground="#1F2733",
    background="#FAFBFC",
    surface="#FFFFFF",
    panel="#E6EBF1",
    success="#1F7A41",
    warning="#9A5B00",
    error="#B3202D",
    dark=False,
    variables={
        "block-cursor-background": "#BCD6F0",
        "block-cursor-foreground": "#10141B",
        "blurred-background": "#D0E4F9",
        "here-background": "#1A62A5",
        "here-foreground": "#FFFFFF",
        "text-disabled": "#5C6470",
        "text-primary": "#15569A",
        "text-secondary": "#6B40A6",
        "text-accent": "#00636D",
        "text-success": "#166132",
        "text-warning": "#804900",
        "text-error": "#A81B28",
        "least-share": "0.75",
        "edge": "#71879E",
        "edge-focus": "#1A62A5",
        **_scrollbar("#71879E", "#E6EBF1"),
    },
)
CONTRAST: Final = Theme(
    name="pulsarbox-contrast",
    primary="#6FC3FF",
    secondary="#E0B0FF",
    accent="#FFEE4D",
    foreground="#FFFFFF",
    background="#000000",
    surface="#000000",
    panel="#1A1A1A",
    success="#5CFF8F",
    warning="#FFA040",
    error="#FF8A8A",
    dark=True,
    variables={
        "block-cursor-background": "#FFEE4D",
        "block-cursor-foreground": "#000000",
        "blurred-background": "#00204E",
        "here-background": "#3D9BFF",
        "here-foreground": "#000000",
        "footer-key-foreground": "#FFEE4D",
        "text-muted": "#E6E6E6",
        "text-disabled": "#C8C8C8",
        "text-primary": "#6FC3FF",
        "text-secondary": "#E0B0FF",
        "text-accent": "#FFEE4D",
        "text-success": "#5CFF8F",
        "text-warning": "#FFA040",
        "text-error": "#FF8A8A",
        "least-share": "0.65",
        "least-contrast": "7",
        "field": "#303030",
        "fill": "#424242",
        "warning-muted": "#70461C",
        "error-muted": "#844747",
        "edge": "#FFFFFF",
        "edge-focus": "#FFEE4D",
        **_scrollbar("#FFFFFF", "#1A1A1A"),
    },
)
OURS: Final = (DARK, LIGHT, CONTRAST)

ANSI_DARK: Final = replace(
    BUILTIN_THEMES["ansi-dark"],
    primary="ansi_cyan",
    secondary="ansi_bright_magenta",
    accent="ansi_bright_yellow",
    error="ansi_bright_red",
    variables={
        **BUILTIN_THEMES["ansi-dark"].variables,
        **_HERE_ANSI,
        **_SCROLLBAR_ANSI,
        "edge": "ansi_bright_black",
    },
)
ANSI_LIGHT: Final = replace(
    BUILTIN_THEMES["ansi-light"],
    secondary="ansi_magenta",
    accent="ansi_blue",
    warning="ansi_magenta",
    variables={
        **BUILTIN_THEMES["ansi-light"].variables,
        **_HERE_ANSI,
        **_SCROLLBAR_ANSI,
        "edge": "ansi_bright_black",
        "text-success": "ansi_default",
    },
)
REPLACED: Final = (ANSI_DARK, ANSI_LIGHT)
"""Themes with the names of Textual's."""

_MARKED_SHARE: Final = 0.12
"""Share of the accent in the background of marked rows."""
_LABEL_SHARE: Final = 0.6
"""Share of a label's color in the edges of panels without the focus."""
_LEAST: Final = (3.0, 4.5)
"""Least contrast of edges of the color of a label, without and with the focus: they tell one box from another."""
_LEAST_HIGH: Final = 7.0
"""Least contrast of edges of the color of a label in the theme of high contrast."""
_MUTED_SHARE: Final = 0.7
"""Least share of the color of text in the muted one of options."""
_LEAST_GRAY: Final = 3.0
"""Least contrast of edges with NO_COLOR (WCAG 2.2, 1.4.11)."""
_SAME_HUE: Final = 0.08
"""Difference of two hues, 0 to 1, below which they look alike."""


def edges(variables: Mapping[str, str], theme: Theme, label: Label | None) -> dict[str, str]:
    """Return the colors of edges. Those of panels are of the label, else of the theme, else derived from it.

    Those of fields and buttons (``field-edge``) are not of the label, whose color would be an alarm beside a choice.
    The colors of the terminal's palette have none of a label, which cannot be compared with the unknown background.
    """
    derived = (
        "ansi_bright_black"
        if theme.ansi
        else Color.parse(variables["background"]).blend(Color.parse(variables["foreground"]), 0.25).hex6
    )
    own = {"edge": variables.get("edge", derived), "edge-focus": variables.get("edge-focus", variables["primary"])}
    return {
        **(own if label is None or theme.ansi else _edges_of_label(variables, theme, Color.parse(label.ground))),
        "field-edge": variables.get("field-edge", own["edge"]),
        "field-edge-focus": own["edge-focus"],
    }


def _edges_of_label(variables: Mapping[str, str], theme: Theme, color: Color) -> dict[str, str]:
    background = Color.parse(variables["background"])
    if theme.name == CONTRAST.name:
        return _edges_high(color, background)
    least, least_focus = _LEAST
    shares = (background.blend(color, step / 20) for step in range(int(_LABEL_SHARE * 20), 20))
    faint = next((each for each in shares if contrast(each, background) >= least), color)
    return {
        "edge": visible(faint, background, least).hex6,
        "edge-focus": visible(color, background, least_focus).hex6,
    }


def _edges_high(color: Color, background: Color) -> dict[str, str]:
    """Return the edges of the theme of high contrast: of the color of a label, and the usual one for the focus."""
    hue, saturation, lightness = color.hsl
    steps = (Color.from_hsl(hue, saturation, lightness + (1 - lightness) * step / 50) for step in range(51))
    edge = next(each for each in steps if contrast(each, background) >= _LEAST_HIGH)
    focus = Color.parse(CONTRAST.variables["edge-focus"])
    apart = abs(hue - focus.hsl.h)
    is_alike = saturation > _SAME_HUE and min(apart, 1 - apart) < _SAME_HUE
    white = background.get_contrast_text(1.0)
    return {"edge": edge.hex6, "edge-focus": (white if is_alike else focus).hex6}


def grounds(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the backgrounds of the current tab, the focused button and selected text, of rows, fields and gauges.

    ``text-error-behind`` is that of a severity in an option: the background of the list, if the color could not be read
    on that of the highlighted option.
    """
    background, accent = (Color.parse(variables[name]) for name in ("background", "accent"))
    is_mixed = background.ansi is None and accent.ansi is None
    here = {
        part: variables.get(f"here-{part}", variables[f"block-cursor-{part}"]) for part in ("background", "foreground")
    }
    return {
        **{f"{name}-{part}": color for name in ("here", "input-selection") for part, color in here.items()},
        "marked-background": background.blend(accent, _MARKED_SHARE).hex6 if is_mixed else variables["background"],
        "blurred-background": variables.get("blurred-background", variables["panel"]),
        "field": variables.get("field", variables["panel"]),
        "fill": variables.get("fill", variables["panel"]),
        "text-error-behind": _behind(variables, "text-error"),
    }


def _behind(variables: Mapping[str, str], name: str) -> str:
    ink, cursor = (theme_color(variables[each]) for each in (name, "block-cursor-background"))
    is_known = ink.ansi is None and cursor.ansi is None
    if is_known and contrast(ink, cursor) >= least_contrast(variables):
        return "transparent"
    return variables["background"] if cursor.ansi is not None else variables["surface"]


def muted(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the muted color of parts of options: a mixed one, because Textual ignores the opacity of colors there.

    It is that of other muted texts if it can be read and is fainter than text. A color of the terminal's palette cannot
    be mixed: it is dimmed, so that the variable has the style.
    """
    ink = theme_color(variables["text-muted"])
    if ink.ansi is not None:
        return {"option-muted": f"dim {variables['text-muted'].partition(' ')[0]}"}
    ground, text = Color.parse(variables["surface"]), Color.parse(variables["foreground"])
    least, most = least_contrast(variables), contrast(text, ground)
    shares = (ground.blend(text, step / 20) for step in range(int(_MUTED_SHARE * 20), 20))
    fitting = (each for each in (ground + ink, *shares) if least <= contrast(each, ground) < most)
    return {"option-muted": next(fitting, text).hex6}


def grays(variables: Mapping[str, str], theme: Theme) -> dict[str, str]:
    """Return the colors that others have with NO_COLOR, which turns all into grays.

    Severities and values of a comparison have that of text, because their grays would be darker than that. Edges and
    selected text differ from their backgrounds by brightness alone, thus have more contrast.
    """
    if theme.ansi:
        return {}
    background, field = (Color.parse(variables[name]).monochrome for name in ("background", "field"))
    edges_on = {"edge": background, "edge-focus": background, "field-edge": field, "field-edge-focus": field}
    return {
        **dict.fromkeys(("text-error", "text-warning", "text-success"), variables["foreground"]),
        **{
            name: visible(Color.parse(variables[name]).monochrome, ground, _LEAST_GRAY).hex6
            for name, ground in edges_on.items()
        },
        "input-selection-background": visible(field, field, least_contrast(variables)).hex6,
        "input-selection-foreground": field.hex6,
        "text-error-behind": "transparent",  # without a color to preserve, it would be a hole in the highlighted line
    }


def visible(color: Color, ground: Color, least: float) -> Color:
    """Return a color with at least this contrast to its background, mixed with black or white as far as needed."""
    far = ground.get_contrast_text(1.0)
    steps = (color.blend(far, step / 20) for step in range(21))
    return next((each for each in steps if contrast(each, ground) >= least), far)
