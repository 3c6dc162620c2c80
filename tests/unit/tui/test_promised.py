"""What operators were promised of the dashboard, each with the action, the screen or the option that keeps it."""

import pytest

from pulsarbox.cli.top import top
from pulsarbox.tui import views
from pulsarbox.tui.actions import BY_NAME
from pulsarbox.tui.app import SCREENS
from pulsarbox.tui.views import View

KEPT: dict[str, tuple[str, ...]] = {
    "overview": ("screen overview",),
    "subscriptions: cause, time to drain, trend": ("column SUBSCRIPTIONS cause drain trend change oldest unacked",),
    "quotas: used, limit, held, by which level": ("column QUOTAS used limit held level", "action quota set"),
    "dead letters by fingerprint": ("screen deadletters", "action groups"),
    "dead letters put back": ("action dlq replay", "action edit", "screen jobs"),
    "dead letters that are lost": ("column DEAD_LETTERS lost", "action sub create"),
    "messages": ("action messages", "action go to", "action follow", "action form", "action difference"),
    "one filter language": ("action filter", "option --filter"),
    "commands and palette": ("action command",),
    "the command that does the same": ("action copy",),
    "read-only, and a colour for production": ("option --read-only", "option --label", "option --label-color"),
    "pause and interval": ("action pause", "action faster", "action slower", "option --interval"),
    "history": ("action time travel", "action earlier", "action later", "action live", "option --at"),
    "maps": ("action cursor map", "action key map"),
    "storage": ("screen storage",),
    "a box that does not run": ("option --data-dir",),
    "plugins": ("screen plugins",),
    "clients, and letting one go": ("screen clients", "action client kick"),
    "one look": ("option --once", "option --output"),
    "in a browser": ("option --serve",),
    "themes": ("action theme",),
    "help": ("action help",),
    "several boxes, TLS, token": ("option --admin-url", "option --token-file", "option --tls-trust-cert-path"),
    "columns": ("action columns", "action sort", "action reverse"),
    "export": ("action export", "action export csv"),
    "events": ("screen events",),
}


@pytest.mark.parametrize("promise", KEPT)
def test_what_was_promised_is_there(promise: str) -> None:
    options = {name for parameter in top.params for name in parameter.opts}
    for kept in KEPT[promise]:
        kind, _, name = kept.partition(" ")
        if kind == "action":
            assert name in BY_NAME
        elif kind == "screen":
            assert name in SCREENS and name in BY_NAME
        elif kind == "option":
            assert name in options
        else:
            which, *keys = name.split()
            view = getattr(views, which)
            assert isinstance(view, View) and set(keys) <= {column.key for column in view.columns}
