"""Our two themes, in addition to those of Textual. Colour must carry no information of its own."""

from typing import Final

from textual.theme import Theme

DARK: Final = Theme(
    name="pulsarbox",
    primary="#5BA4E6",
    secondary="#B48EE8",
    accent="#F2C14E",
    foreground="#D5DAE3",
    background="#10141B",
    surface="#151A23",
    panel="#1E2531",
    success="#6CC58A",
    warning="#F0A952",
    error="#F26D78",
    dark=True,
    variables={
        "block-cursor-background": "#2B4C73",
        "block-cursor-foreground": "#FFFFFF",
        "footer-key-foreground": "#F2C14E",
        "text-disabled": "#868D99",
    },
)
LIGHT: Final = Theme(
    name="pulsarbox-light",
    primary="#1A62A5",
    secondary="#7A4FB5",
    accent="#7A5200",
    foreground="#1F2733",
    background="#FAFBFC",
    surface="#FFFFFF",
    panel="#E6EBF1",
    success="#1F7A41",
    warning="#9A5B00",
    error="#B3202D",
    dark=False,
    variables={"block-cursor-background": "#CFE2F5", "block-cursor-foreground": "#10141B", "text-disabled": "#666E7A"},
)
OURS: Final = (DARK, LIGHT)
