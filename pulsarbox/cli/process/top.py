"""``pulsarbox top``: the dashboard, or one snapshot of a view for scripts and tickets."""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.box_label import checked_label, label_for
from pulsarbox.cli.common.exits import Failed, Misused, Unreachable, ending_of_status, run
from pulsarbox.cli.common.scope_options import scope_options
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.common.time_arguments import Words
from pulsarbox.cli.common.value_types import BoundedInteger, Seconds
from pulsarbox.cli.connect.target import Target, late_admin_options

if TYPE_CHECKING:
    from pulsarbox.tui.feed import Feed
    from pulsarbox.tui.preferences import Preferences
    from pulsarbox.tui.widgets.box_label import Label

PLACES: Final = (
    *("overview", "topics", "subscriptions", "deadletters", "quotas"),
    *("clients", "storage", "plugins", "events", "jobs", "pipelines"),
)
"""Names of screens, repeated from ``pulsarbox.tui.actions.action_table`` to keep help and completion fast."""


class ScreenChoice(click.Choice[str]):
    """Click type of a screen name; accepts ``dlq`` for deadletters."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """See click.ParamType."""
        return super().convert("deadletters" if value == "dlq" else value, param, ctx)


def _time(text: str) -> str:
    """Validate a time of history and return it as typed. It is resolved later, by the clock of the box."""
    from pulsarbox.tui.position_input import past

    past(text)
    return text


@click.command()
@click.argument("view", type=ScreenChoice(PLACES), default="overview", metavar="[VIEW]")
@click.option("--once", is_flag=True, help="Print one snapshot to stdout, without dashboard.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "svg"]),
    default="table",
    show_default=True,
    help="With --once: a table, the response of the box, or an image of the screen.",
)
@click.option(
    "--filter",
    "passing",
    metavar="EXPRESSION",
    default="",
    help="Show only matching rows, or /pattern. Applies to backlogs in the overview with --once.",
)
@click.option("--sort", metavar="COLUMN", help="Sort by COLUMN, descending; -COLUMN: ascending.")
@click.option(
    "--limit", type=BoundedInteger(1, 1000), default=50, show_default=True, help="With --once: maximum rows per table."
)
@click.option(
    "--at", metavar="TIME", type=Words("time", _time), help="Show recorded history: -8h, 03:12, 2026-11-21T03:12."
)
@click.option("--read-only", is_flag=True, help="Disable all actions that change the box.")
@click.option(
    "--interval",
    type=Seconds(0.1, 60),
    default="500ms",
    show_default=True,
    help="Refresh interval; 1s or 2s over a slow link.",
)
@click.option("--label", metavar="TEXT", help="Label above every screen, such as PRODUCTION. [default: of the context]")
@click.option("--label-color", metavar="COLOR", help="Colour of the label: red, darkgreen, #b3202d.")
@click.option(
    "--size", metavar="WxH", default="160x50", show_default=True, help="With -o svg: size in columns and lines."
)
@click.option("--serve", is_flag=True, help="Serve the dashboard to a browser on this machine.")
@click.option(
    "--serve-host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="With --serve: loopback address."
)
@click.option(
    "--serve-port", type=BoundedInteger(1, 65535), default=8765, show_default=True, help="With --serve: port."
)
@scope_options
@late_admin_options
def top(admin: Callable[[], Target], **options: Any) -> None:
    """Monitor and manage a box: topics, backlogs and their causes, quotas, dead letters.

    VIEW is overview, topics, subscriptions, deadletters (or dlq), quotas, clients, storage, plugins, events, jobs,
    pipelines. In the dashboard, ? lists the keys, x the actions on a row, y copies the equivalent command, and q quits.

    With --once, the overview prints totals, the subscriptions with a backlog and its cause, the quotas in use, and the
    dead letters. docs/tui.md describes its JSON.

    With --data-dir of a stopped box, shows the contents of that directory, read-only. Tenant admins, who lack
    permission for the whole box, pass --tenant or --namespace.

    \b
    Exit codes:
      2  a filter, column, size or combination of options is invalid
      5  not authorized
      6  the box is unreachable

    \b
    Examples:
      pulsarbox top
      pulsarbox top --once
      pulsarbox top subscriptions --filter 'backlog > 1000' --sort change
      pulsarbox top --once -o svg > ticket.svg
      pulsarbox top subscriptions --once -o json | jq '.rows[].cause'
      pulsarbox top --at -8h
      pulsarbox top --tenant shop
      pulsarbox top --admin-url https://box:8443 --token-file reader.token --read-only
      pulsarbox top --label PRODUCTION --label-color darkred
    """
    run(_top, admin, click.get_current_context().params.get("data_dir"), **options)


def _top(admin: Callable[[], Target], data_dir: str | None, once: bool, serve: bool, **options: Any) -> None:
    if serve and once:
        raise Misused("--serve and --once cannot be combined")
    if not once and not serve:
        gc.disable()  # until the first screen: collecting takes a tenth of the start, without garbage yet
    feed, target, options["label"] = _feed(admin, data_dir, options["scope"], options["label"], options["label_color"])
    if serve:
        _serve(options["serve_host"], options["serve_port"])
        return
    options["at"], options["ahead"] = _at(feed, options["at"])
    if once:
        try:
            _once(feed, target, **options)
        finally:
            feed.close()
        return
    if options["output"] != "table":
        raise Misused(f"-o {options['output']} requires --once")
    served = os.environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")  # started by --serve, for a browser page
    if not served and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Misused("stdout is not a terminal: use `pulsarbox top --once` for a snapshot")
    _run(feed, target, served, **options)


def _run(feed: "Feed", target: list[str], served: bool, **options: Any) -> None:
    """Run the dashboard. Its first queries run while the drawing libraries load."""
    import shutil

    from pulsarbox.tui.actions import box_queries
    from pulsarbox.tui.preferences import Preferences, place

    kept = Preferences(place())
    _order(kept, options["view"], options["sort"])
    size = shutil.get_terminal_size()
    feed.prefetch(box_queries.first(options["view"], kept, size, options["passing"], options["at"]))
    app = _app(feed, target, kept, **options)
    if served:
        app.parent_pid = os.getppid()
    else:
        from pulsarbox.cli.common.terminal import end_when_closed

        end_when_closed(sys.stdin.fileno(), sys.stderr.fileno())
    app.run()
    if app.has_failed:
        raise Failed("the dashboard failed; please report the error above")


def show_tour(admin_url: str) -> None:
    """Run the dashboard on the box of the tour, with its guide. Raises Failed if it fails."""
    from pulsarbox.cli.connect.target import TargetOptions, admin_target
    from pulsarbox.tui.app import Top
    from pulsarbox.tui.feed import Feed, web_exchange
    from pulsarbox.tui.widgets.tour_guide import TourGuide

    found = admin_target(TargetOptions(admin_url=admin_url))
    feed = Feed(web_exchange(found.hosts, secure=found.secure, credentials=found.credentials()), found.url, {})
    app = Top(feed, target=("--admin-url", admin_url))
    app.guide = TourGuide()
    app.run()
    if app.has_failed:
        raise Failed("the dashboard failed; please report the error above")


def _order(kept: "Preferences", view: str, sort: str | None) -> None:
    if sort:
        kept.set_once(f"sort.{view}", [sort.removeprefix("-"), not sort.startswith("-")])


def _feed(
    admin: Callable[[], Target], data_dir: str | None, scope: dict[str, str], label: str | None, color: str | None
) -> "tuple[Feed, list[str], Label | None]":
    """Return the feed, the options with which another command addresses the same box, and the label of the box."""
    from pulsarbox.tui.feed import Feed, web_exchange

    try:
        found = admin()
    except Unreachable:
        if data_dir is None or not Path(data_dir).is_dir():
            raise
        from pulsarbox.cli.process.lock_holder import find

        if find(Path(data_dir)) is not None:  # the box is starting
            raise
        from pulsarbox.cli.data.dead_box import dead_exchange

        feed = Feed(dead_exchange(Path(data_dir)), f"{data_dir} (no box is running)", scope)
        return feed, ["--data-dir", data_dir], checked_label(label, color)
    words = ["--data-dir", data_dir] if data_dir is not None else []
    if found.origin == "--admin-url":
        words = ["--admin-url", found.url]
    token = found.options.get("token_file")
    if token:
        words += ["--token-file", token]
    exchange = web_exchange(found.hosts, secure=found.secure, credentials=found.credentials())
    return Feed(exchange, found.url, scope), words, label_for(found, label, color)


def _at(feed: "Feed", text: str | None) -> tuple[int | None, int]:
    """Return a time of history by the clock of the box (ms since 1970), and the offset of that clock in ms.

    Raises Misused for a time in the future.
    """
    if text is None:
        return None, 0
    from pulsarbox.tui.actions.operation import Wrong
    from pulsarbox.tui.feed import FeedError, RowQuery
    from pulsarbox.tui.position_input import instant, now_ms, past

    try:
        ahead = feed.view(RowQuery("overview", limit=1)).virtual_clock or 0
    except FeedError:  # the query for history reports the error
        return instant(text), 0
    try:
        return past(text, now_ms() + ahead), ahead
    except Wrong as error:
        raise Misused(f"--at: {error}") from None


def _app(feed: "Feed", target: list[str], kept: Any = None, **options: Any) -> Any:
    from pulsarbox.tui.app import Top

    app = Top(
        feed,
        kept=kept,
        interval=options["interval"],
        read_only=options["read_only"],
        at=options["at"],
        passing=options["passing"],
        place=options["view"],
        target=target,
    )
    app.label = options["label"]
    app.ahead = options["ahead"]
    _order(app.kept, options["view"], options["sort"])
    return app


def _once(feed: "Feed", target: list[str], output: str, **options: Any) -> None:
    import shutil

    from pulsarbox.tui import once
    from pulsarbox.tui.feed import FeedError

    width, _, height = options["size"].partition("x")
    if not (width.isdigit() and height.isdigit() and 40 <= int(width) <= 1000 and 10 <= int(height) <= 500):
        raise Misused(f"--size {options['size']}: columns and lines, such as 160x50")
    try:
        if output == "svg":
            click.echo(once.picture(_app(feed, target, **options), int(width), int(height)))
            return
        document = once.asked(
            feed, options["view"], options["sort"], options["limit"], options["passing"], options["at"]
        )
        if output == "json":
            click.echo(once.as_json(document))
            return
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        click.echo("\n".join(once.as_text(options["view"], document, columns)))
    except FeedError as trouble:
        if trouble.is_gone:
            raise Unreachable(f"cannot connect to {feed.label}: {trouble}; see `pulsarbox status`") from None
        if trouble.status in (400, 406, 422):
            raise Misused(str(trouble)) from None
        raise ending_of_status(trouble.status, str(trouble)) from None


def _serve(host: str, port: int) -> None:
    """Serve web pages, each of which runs the same command without --serve."""
    try:
        from pulsarbox.tui.web import DashboardServer, is_loopback
    except ImportError:
        raise Failed(
            "--serve needs textual-serve: pip install 'pulsarbox[serve]'; or use a terminal, over ssh as well"
        ) from None
    if not is_loopback(host):
        raise Misused(
            f"--serve-host {host}: only addresses of this machine, such as 127.0.0.1, because everyone who opens"
            f" the page has your permissions; from another machine use `ssh -L {port}:127.0.0.1:{port}`"
        )
    page = DashboardServer(_without_serving(sys.argv[1:]), host, port)

    def begun() -> None:
        notify(f"{page.address} until Ctrl-C; from another machine: ssh -L {port}:{host}:{port}")

    try:
        page.run(begun)
    except OSError as error:
        raise Failed(
            f"{host}:{port} cannot be bound: {error.strerror}; choose another port with --serve-port"
        ) from None


def _without_serving(words: Sequence[str]) -> list[str]:
    """Return the command line without the --serve options."""
    left, rest = [], iter(words)
    for word in rest:
        name, given, _ = word.partition("=")
        if name in ("--serve-port", "--serve-host"):
            if not given:
                next(rest, None)
        elif word != "--serve":
            left.append(word)
    return left
