"""The tour in a terminal: five steps over real traffic, and nothing left at its end."""

from pathlib import Path

from tests.e2e.clients import until
from tests.e2e.terminal import pulsarbox, tmux


def tour_in(folder: Path) -> list[str]:
    """The command, with its data below ``folder``."""
    return ["env", f"TMPDIR={folder}", *pulsarbox("tour")]


def test_five_steps(tmp_path: Path) -> None:
    with tmux(tour_in(tmp_path), 120, 40) as terminal:
        terminal.until("Tour 1/5", "shop/eu/orders", "shipping", "no permits")
        (folder,) = tmp_path.glob("pulsarbox-tour-*")
        terminal.keys("Enter")
        terminal.until("Tour 2/5", "shipping of shop/eu/orders", "shipping-1")
        terminal.keys("4")
        terminal.until("Tour 3/5", "shop/eu/orders-rejected")
        terminal.keys("5")
        terminal.until("Tour 4/5", "publish rate", "25/s")
        terminal.keys("F2")
        terminal.until("Tour 5/5")
        terminal.keys("F3")
        terminal.until("Tour 4/5")
        terminal.keys("q")
        until(lambda: not folder.exists())


def test_a_closed_terminal_leaves_nothing(tmp_path: Path) -> None:
    with tmux(tour_in(tmp_path), 120, 40) as terminal:
        terminal.until("Tour 1/5", "Published")
        (folder,) = tmp_path.glob("pulsarbox-tour-*")
    until(lambda: not folder.exists())
