"""The views of the dashboard: walks from view to view on one simulated box each, by keys and actions."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from pulsarbox.tui.actions.action_table import PLACES
from pulsarbox.tui.actions.operations import DEEDS
from pulsarbox.tui.app import SCREENS
from pulsarbox.tui.widgets.box_label import label_of
from tests.gallery import boxes
from tests.unit.tui.driving import Driver
from tests.unit.tui.fake import NOW, FakeBox


class View(NamedTuple):
    """One view, and the way to it from the previous one."""

    name: str
    keys: str
    """Keys to press, separated by spaces."""
    screen: str
    """Class of the screen."""
    shows: str = ""
    """A text that it shows once all of it is there."""
    act: str = ""
    """Name of an action to run after the keys."""
    change: Callable[[Driver], Any] | None = None
    """A change of the box or the application before the keys."""


class Walk(NamedTuple):
    """Views of one box, in the order in which they are opened."""

    name: str
    box: Callable[[], FakeBox]
    views: tuple[View, ...]
    options: Mapping[str, Any] = {}
    """Options of the dashboard, see ``tests.unit.tui.driving``."""
    is_tour: bool = False
    """Whether a guide shows the steps of the tour, from the first one on."""


def _places(prefix: str, *names: str) -> tuple[View, ...]:
    """Return views of the main screens with these names, or of all."""
    return tuple(
        View(f"{prefix}-{name}", key, SCREENS[name].partition(":")[2])
        for name, _, _, key in PLACES
        if not names or name in names
    )


def _deeds(kind: str, keys: Mapping[str, str] = {}) -> tuple[View, ...]:
    """Return the dialogs of the actions on a kind of rows. ``keys`` lead to their rows, by name of the action."""
    return tuple(
        View(f"dialog-{deed.name.replace(' ', '-')}", keys.get(deed.name, "escape"), "OperationDialog", act=deed.name)
        for deed in DEEDS
        if deed.on[0] == kind
    )


def _without_bytes(driver: Driver) -> None:
    """Hide the bytes, which a wide terminal shows unasked, so that a key shows them in any size."""
    if driver.screen.has_class("-beside"):
        driver.screen.act("dump")


_MAIN: Final = (
    View("overview", "1", "Overview"),
    View("overview-table", "tab", "Overview", ">orders-0"),
    View("topics", "2", "TopicsScreen"),
    View("topic-menu", "x", "ChoiceDialog"),
    View("topics-sort", "escape s", "ChoiceDialog"),
    View("topics-columns", "escape c", "ColumnsDialog"),
    View("topics-filter", "escape slash", "TopicsScreen"),
    View("topics-filtered", "b a c k l o g space greater_than_sign space 9 0 0 0 enter", "TopicsScreen", "of 40"),
    View("topics-none", "slash b a c k l o g less_than_sign 0 enter", "TopicsScreen", "No row matches"),
    View("topics-command", "escape colon t o", "TopicsScreen"),
    View("topic-map", "escape M", "TopicMap", "orders-0"),
    View("topic-map-rate", "s", "TopicMap", "published per second"),
    View("topic-map-size", "s", "TopicMap", "bytes"),
    View("subscriptions", "escape 3", "Subscriptions"),
    View("subscriptions-marked", "space space", "Subscriptions"),
    View("subscriptions-menu-marked", "x", "ChoiceDialog"),
    View("subscription-menu", "escape u k k x", "ChoiceDialog"),
    View("subscription", "escape enter", "SubscriptionDetails"),
    View("cursor-map", "m", "CursorMapScreen", "acknowledged"),
    View("key-map", "escape K", "KeyMapScreen", "customer-9"),
    View("browser", "escape b", "Browser", "published"),
    View("browser-text", "v", "Browser"),
    View("browser-bytes", "v", "Browser"),
    View("browser-go-to", "v o", "Question"),
    View("browser-go-to-wrong", "x y enter", "Question", "expected"),
    View("browser-follow", "escape F", "Browser", "following"),
    View("message", "F enter", "MessageViewer", "customer"),
    View("message-search", "slash", "MessageViewer"),
    View("message-found", "v i p enter", "MessageViewer", "1 of"),
    View("message-folded", "z", "MessageViewer"),
    View("message-bytes-beside", "Z h", "MessageViewer", "Bytes", change=_without_bytes),
    View("message-text", "h v", "MessageViewer"),
    View("message-hex", "v", "MessageViewer"),
    View("message-copy", "v y", "ChoiceDialog"),
    View("message-empty", "escape M less_than_sign", "MessageViewer", "0 B"),
    View("message-binary", "less_than_sign", "MessageViewer", "000000"),
    View("difference", "less_than_sign less_than_sign D", "MessageDifference", "added"),
    View("dead-letters", "4", "DeadLettersScreen"),
    View("dead-letters-menu", "x", "ChoiceDialog"),
    View("groups", "escape enter", "Groups", "timeout"),
    View("groups-unfolded", "enter", "Groups", "text"),
    View("replay", "R", "OperationDialog"),
    View("edit", "escape j enter E", "Editing"),
    View("quotas", "escape escape escape 5", "Quotas"),
    View("dialog-quota-set", "enter", "OperationDialog"),
    View("clients", "escape 6", "Clients"),
    View("clients-menu", "x", "ChoiceDialog"),
    View("storage", "escape 7", "Storage"),
    View("plugins", "8", "PluginsScreen"),
    View("plugin", "enter", "TextDialog"),
    View("events", "escape 9", "EventsScreen"),
    View("event", "enter", "TextDialog"),
    View("jobs", "escape 0", "JobsScreen"),
    View("job", "enter", "TextDialog"),
    View("jobs-menu", "escape x", "ChoiceDialog"),
    View("pipelines", "escape P", "PipelinesScreen"),
    View("pipeline", "G enter", "TextDialog"),
    View("palette", "escape ctrl+p", "ActionPalette", "Browse"),
    View("palette-found", "q u o t", "ActionPalette", "quota"),
    View("help", "escape escape 3 3 question_mark", "TextDialog"),
    View("help-message", "escape b enter question_mark", "TextDialog"),
    View("time-travel", "escape escape escape 1 t", "Question"),
    View("export", "escape 2", "Question", act="export"),
    View("paused", "escape p", "TopicsScreen", "paused"),
    View("notification", "p y", "TopicsScreen", "Copied"),
    View("notification-warning", "", "TopicsScreen", "not available", act="follow"),
    View("read-only", "r", "TopicsScreen", "read-only", change=lambda driver: setattr(driver.box, "read_only", True)),
)
_DEEDS: Final = (
    View("deed-topics", "2", "TopicsScreen"),
    *_deeds("topic"),
    View("deed-subscriptions", "escape 3", "Subscriptions"),
    *_deeds("subscription"),
    View("deed-marked", "escape space space space", "OperationDialog", act="sub clear"),
    View("deed-marked-field", "escape", "OperationDialog", act="sub skip"),
    View("deed-wrong-value", "ctrl+s", "OperationDialog", "type '"),
    View("deed-dead-letters", "escape 4", "DeadLettersScreen"),
    *_deeds("deadletters"),
    View("deed-jobs", "escape 0", "JobsScreen"),
    *_deeds("job", {"job resume": "escape j"}),
    View("deed-clients", "escape 6", "Clients"),
    *_deeds("client"),
    View("dry-run", "escape 4 R up up up y e s ctrl+s", "DryRunDialog", "Result of the dry run"),
)


def _goes(driver: Driver) -> None:
    driver.box.gone = "connection refused"


def _refuses(driver: Driver) -> None:
    driver.box.gone, driver.box.refused = (
        "",
        (403, "the role 'reader' lacks the permission 'consume' on this namespace"),
    )


def _fails(driver: Driver) -> None:
    driver.box.refused = (500, "disk I/O error: /srv/box/journal: input/output error (errno 5)")


def _holds(driver: Driver) -> None:
    assert isinstance(driver.box, boxes.HeldBox)
    driver.box.is_held = True


def _gone() -> FakeBox:
    box = boxes.busy()
    box.gone = "connection refused"
    return box


def _in_the_future() -> FakeBox:
    box = boxes.busy()
    box.virtual_clock = 10 * 86_400_000
    return box


WALKS: Final = (
    Walk("main", boxes.busy, _MAIN),
    Walk("deeds", boxes.busy, _DEEDS),
    Walk("empty", boxes.empty, (*_places("empty"), View("empty-map", "2 M", "TopicMap"))),
    Walk("gone", _gone, _places("gone")),
    Walk(
        "trouble",
        boxes.busy,
        (
            View("lost-overview", "r", "Overview", "connection refused", change=_goes),
            View("lost-topics", "2", "TopicsScreen", "connection refused"),
            View("refused", "3", "Subscriptions", "lacks the permission", change=_refuses),
            View("failed", "4", "DeadLettersScreen", "disk I/O error", change=_fails),
        ),
    ),
    Walk("slow", boxes.HeldBox, (View("loading-subscriptions", "3", "Subscriptions", "loading …", change=_holds),)),
    Walk("past", boxes.busy, _places("past", "overview", "subscriptions", "jobs"), {"at": NOW - 3_600_000}),
    Walk("clock", _in_the_future, _places("clock", "subscriptions")),
    Walk(
        "label",
        boxes.busy,
        (
            *_places("label", "overview", "topics"),
            View("label-dialog", "3", "OperationDialog", act="sub clear"),
        ),
        {"label": label_of("PRODUCTION", "darkred")},
    ),
    Walk(
        "tour",
        boxes.tour,
        (
            View("tour-overview", "1", "Overview", "Tour 1/5"),
            View("tour-quotas", "f2 f2 f2 5", "Quotas", "Tour 4/5"),
        ),
        is_tour=True,
    ),
    Walk("directories", boxes.directories, _places("directories", "overview", "storage")),
    Walk("many-directories", boxes.many_directories, _places("many-directories", "storage")),
    Walk("files", boxes.files, _places("files", "overview", "subscriptions", "quotas")),
    Walk(
        "crowded",
        boxes.crowded,
        (
            *_places("crowded"),
            View("crowded-map", "2 M", "TopicMap"),
            View("crowded-menu", "escape x", "ChoiceDialog"),
            View("crowded-subscription", "escape 3 enter", "SubscriptionDetails"),
            View("crowded-dialog", "", "OperationDialog", act="sub clear"),
        ),
    ),
)


def views() -> dict[str, View]:
    """Return all views by name. Names are unique."""
    found = [view for walk in WALKS for view in walk.views]
    named = {view.name: view for view in found}
    assert len(named) == len(found)
    return named
