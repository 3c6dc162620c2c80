"""Actions on the rows of a screen: their menu, the dialogs of operations, their requests, and screens about a row."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.screen import Screen

from pulsarbox.cleaning import clean
from pulsarbox.names import short_topic
from pulsarbox.tui.actions.action_table import BY_NAME, for_row
from pulsarbox.tui.actions.dry_run import is_dry
from pulsarbox.tui.actions.key_bindings import key_or_command
from pulsarbox.tui.actions.operation import default_of
from pulsarbox.tui.actions.replay_operations import JOBS
from pulsarbox.tui.feed import FeedError, aside, real
from pulsarbox.tui.widgets import command_lines, numbers
from pulsarbox.tui.widgets.columns import subscription_title

if TYPE_CHECKING:
    from pulsarbox.tui.actions.action_table import Action
    from pulsarbox.tui.actions.key_bindings import Keys
    from pulsarbox.tui.actions.operation import OperationSpec, Request, Row, Values
    from pulsarbox.tui.app import Top

_KEY_MAP: Final = "maps.key_map:KeyMapScreen"


class RowActions(Screen[None]):
    """A screen with rows, of which actions concern the one at the cursor or the marked ones."""

    kind: ClassVar[str] = ""
    """Kind of its rows, which determines the available actions."""

    @property
    def noun_of_rows(self) -> str:
        """Noun for a row that actions concern."""
        return "row"

    def __init__(self) -> None:
        super().__init__()
        self._dry_runs: list[str] = []
        """IDs of the dry runs that were started last."""

    @property
    def top(self) -> "Top":
        """The application."""
        app: Any = self.app
        found: Top = app
        return found

    @property
    def keys(self) -> "Keys":
        """The keys of actions on this screen, as the user has chosen them."""
        return self.top.keys_on(self.kind)

    def key_of(self, name: str) -> str:
        """Return the first key of an action for display, else its command."""
        return key_or_command(self.keys, name)

    @property
    def is_seen(self) -> bool:
        """Whether no other screen or dialog covers it."""
        return self.top.active_screen is self

    def ask_again(self) -> None:
        """Query the box now."""
        raise NotImplementedError

    def act(self, name: str) -> None:
        """Run an action by name."""
        raise NotImplementedError

    def line(self, *words: str) -> str:
        """Return a command line for this box."""
        return command_lines.with_target(words, self.top.target)

    def rows_chosen(self) -> "Sequence[Row]":
        """Return the target rows of a deed."""
        return ()

    def do_deed(self, deed: "OperationSpec") -> None:
        """Open the dialog of a deed for the current rows."""
        rows = [row for row in self.rows_chosen() if deed.fits(row)]
        if self.kind not in deed.on or not rows:
            self.top.notify(f"'{deed.name}' does not apply on this screen", severity="warning", markup=False)
            return
        if self.top.read_only:
            self.top.notify(
                f"'{deed.name}' changes the box, and the dashboard is read-only", severity="warning", markup=False
            )
            return
        self.run_worker(self._deed(deed, rows), group="deed")

    def do_menu(self) -> None:
        """Open the menu of actions on the row."""
        self.run_worker(self.menu(), group="dialog")

    async def menu(self, here: str = "") -> None:
        """Open the menu with the action ``here`` selected; not at all if that is unavailable."""
        from pulsarbox.tui.actions.dialogs import ChoiceDialog

        rows = list(self.rows_chosen())
        if not rows and here:
            return
        if not rows:
            self.top.notify("No row is selected", severity="warning")
            return
        title = self.title_of(rows[0]) if len(rows) == 1 else f"{len(rows)} marked {self.noun_of_rows}s"
        actions = self.actions_for_all(rows)
        if not actions:
            self.top.notify(f"No action applies to {title}", severity="warning", markup=False)
            return
        options = []
        for action in actions:
            mark = "! " if action.deed is not None and action.deed.danger else "  "
            title_of = f"{mark}{action.title_on(self.kind)}"
            options.append((action.name, title_of, "\n".join(self._commands_of(action, rows))))
        if here and here not in {name for name, _, _ in options}:
            return
        found = await self.app.push_screen_wait(ChoiceDialog(title, options, here))
        if found is not None:
            self.act_on(found, rows)

    def _commands_of(self, action: "Action", rows: "Sequence[Row]") -> list[str]:
        """Return the command lines of an action on rows, with the initial values of its fields; empty for none."""
        deed = action.deed
        if deed is None:
            words = action.words(rows[0])
            return [self.line(*words)] if words else []
        fitting = filter(deed.fits, rows)
        return [
            self.line(*deed.words(row, {each.name: default_of(each, row) for each in deed.fields})) for row in fitting
        ]

    def actions_for(self, row: "Row") -> "list[Action]":
        """Return the actions that apply to a row.

        Without those that change the box if it is read-only, and in history without those on what is there now.
        """
        return [
            each
            for each in for_row(self.kind)
            if each.fits(row)
            and (each.deed is None or (each.deed.fits(row) and not self.top.read_only))
            and (each.has_past or self.top.at is None)
        ]

    def actions_for_all(self, rows: "Sequence[Row]") -> "list[Action]":
        """Return the actions that apply to rows: to several ones only those that change the box, or compare two."""
        if len(rows) == 1:
            return self.actions_for(rows[0])
        found = {action.name for row in rows for action in self.actions_for(row) if action.deed is not None}
        found |= {"difference"} if len(rows) == 2 else set()
        return [action for action in for_row(self.kind) if action.name in found]

    def act_on(self, name: str, rows: "Sequence[Row]") -> None:
        """Run an action on the rows for which the menu was opened, even if the cursor has moved."""
        action = next(each for each in for_row(self.kind) if each.name == name)
        if action.deed is None:
            self.act(name)
        elif self.top.read_only:
            self.top.notify(
                f"'{name}' changes the box, and the dashboard is read-only", severity="warning", markup=False
            )
        else:
            fitting = [row for row in rows if action.deed.fits(row)]
            self.run_worker(self._deed(action.deed, fitting), group="deed")

    def title_of(self, row: "Row") -> str:
        """Return the title of a row."""
        return subscription_title(row) if row.get("subscription") else short_topic(str(row.get("topic") or ""))

    def advice_on(self, row: "Row") -> str:
        """Return the advice for a subscription; empty in history, because all of it concerns what is there now."""
        from pulsarbox.tui.actions.advice import advice

        if self.top.at is not None or numbers.keeps_up(dict(row)):
            return ""
        return advice(row.get("cause"), self.keys, may_change=not self.top.read_only)

    def row_meant(self) -> "Row | None":
        """Return the row for an action on a single row, None without one."""
        rows = self.rows_chosen()
        return rows[0] if rows else None

    def do_messages(self) -> None:
        """Browse the messages of the row."""
        row = self.row_meant()
        if row is not None and row.get("topic"):
            self.top.open("messages.browser:Browser", real(row, "topic"), real(row, "subscription"))
        else:
            self.top.notify("Select a row with a topic first", severity="warning")

    def do_cursor_map(self) -> None:
        """Open the cursor map of the subscription."""
        self._open_map("maps.cursor_map:CursorMapScreen")

    def do_key_map(self) -> None:
        """Open the key map of the subscription."""
        self._open_map(_KEY_MAP)

    def _open_map(self, name: str) -> None:
        row = self.row_meant()
        if row is not None and name == _KEY_MAP and not BY_NAME["key map"].fits(row):
            told = f"The key map needs a Key_Shared subscription; this one is {row.get('type') or 'of unknown type'}"
            self.top.notify(told, severity="warning", markup=False)
        elif row is None or self.kind != "subscription":
            self.top.notify("Select a subscription first: 3 lists them", severity="warning")
        else:
            self.top.open(name, row)

    async def _deed(self, deed: "OperationSpec", rows: "Sequence[Row]") -> None:
        from pulsarbox.tui.actions.dialogs import OperationDialog

        dialog = OperationDialog(deed, rows, self.top.target)
        asked = await self.app.push_screen_wait(dialog)
        if asked and await self.carry_out(deed.title, asked) and self._dry_runs:
            await self._offer(deed, rows, dialog.confirmed, self._dry_runs[-1])

    async def _offer(self, deed: "OperationSpec", rows: "Sequence[Row]", values: "Values", job: str) -> None:
        """Show the result of a dry run, and offer the operation for real."""
        from pulsarbox.tui.actions import dry_run
        from pulsarbox.tui.actions.dry_run_dialog import RUN, DryRunDialog

        try:
            told = await dry_run.finished(self.top.feed, job)
        except FeedError as trouble:
            self.top.notify(
                str(trouble), title="The result of the dry run is unknown", severity="warning", markup=False
            )
            return
        if told is None or not self.is_seen:
            result = self._progress("The dry run takes longer") if told is None else dry_run.result_of(told)
            self.top.notify(result, title=f"Dry run: {deed.title}", timeout=10, markup=False)
            return
        dialog = DryRunDialog(clean(dry_run.result_of(told)), dry_run.real_run(told))
        if await self.app.push_screen_wait(dialog) == RUN:
            await self._deed(dry_run.for_real(deed, values), rows)

    def _progress(self, told: str) -> str:
        """Return a text about a job, and the key of the screen that shows its progress."""
        return f"{told}; press {self.key_of('jobs')} for its progress"

    async def carry_out(self, title: str, asked: "Sequence[Request]") -> bool:
        """Send the requests in order; stop and notify at the first error. Return whether all succeeded."""
        done = 0
        jobs: list[str] = []
        self._dry_runs = []
        for request in asked:
            try:
                told = await aside(partial(self.top.feed.ask, *request))
            except FeedError as trouble:
                before = f" ({done} of {len(asked)} completed)" if len(asked) > 1 else ""
                self.top.notify(
                    f"{trouble}{before}", title=f"Failed: {title}", severity="error", timeout=10, markup=False
                )
                return False
            done += 1
            if request.target == JOBS and isinstance(told, dict):
                jobs.append(str(told.get("id")))
                self._dry_runs += jobs[-1:] if is_dry(request) else []
        what = "done" if not jobs else self._progress(f"job {', '.join(jobs)} started")
        if not self._dry_runs:  # the dialog with the result says more
            self.top.notify(f"{title}: {what}" + (f" ({done})" if done > 1 else ""), timeout=4, markup=False)
        self.ask_again()
        return True
