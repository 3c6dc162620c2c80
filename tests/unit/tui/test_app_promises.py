"""Documented features of the dashboard: the action, screen or option of each, and the tests that prove it.

A test that is missing or renamed fails here.
"""

import ast
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from pulsarbox.cli.process.top import top
from pulsarbox.tui import views
from pulsarbox.tui.actions.action_table import BY_NAME
from pulsarbox.tui.app import SCREENS
from pulsarbox.tui.views import TableView

TESTS: Final = Path(__file__).parents[2]


class Promise(NamedTuple):
    """One feature."""

    what: str
    kept_by: tuple[str, ...]
    proved_by: tuple[str, ...]
    """The tests as ``file::function`` below ``tests``, without ``.py``."""


def _of(file: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{file}::test_{name}" for name in names)


_SCREENS, _LINKS, _DOING = (
    "unit/tui/screens/test_screens",
    "unit/tui/test_feed_links",
    "unit/tui/actions/test_operations",
)
_LOOKS = "unit/tui/widgets/test_styles"
_EVERY = "unit/tui/actions/test_action_table"
_TOP, _JOURNEYS, _JOBS = "e2e/tui/test_top", "e2e/tui/test_journeys", "e2e/cli/test_dead_letter_jobs"

PROMISES: Final = {
    1: Promise("overview with graphs", ("screen overview",), (
        *_of(_SCREENS, "every_screen_at_any_size", "no_word_stands_without_its_number_however_wide_the_line_is"),
        *_of("unit/tui/widgets/test_numbers", "an_area_fills_from_below_and_the_newest_is_on_the_right"),
        *_of("e2e/admin/test_live_views", "the_overview_counts_what_goes_on"),
        *_of("unit/tui/actions/test_diagnosis", "they_are_in_the_order_of_their_kinds"),
        *_of("unit/tui/screens/test_overview", "enter_goes_to_what_matters_most_with_the_remedy_selected"),
    )),
    2: Promise("subscriptions: rates, age, trend, time to drain",
        ("column SUBSCRIPTIONS backlog change inRate outRate unacked oldest consumers type trend drain",), (
        *_of("unit/tui/widgets/test_numbers", "when_a_backlog_is_gone"),
        *_of("unit/tui/widgets/test_numbers", "a_trend_is_to_the_right_and_between_its_own_extremes"),
        *_of("unit/server/live/test_subscriptions", "the_row_of_a_subscription_that_is_read"),
    )),
    3: Promise("quotas: used, limit, held, by which level",
        ("column QUOTAS used limit held level", "action quota set"), (
        *_of(_SCREENS, "a_quota_is_changed_in_its_place"),
        *_of(_TOP, "the_backlog_that_grows_its_cause_and_the_quota_that_is_raised"),
        *_of("unit/server/live/test_quotas", "each_level_of_dispatch_says_what_is_used_and_which_of_them_holds"),
    )),
    4: Promise("why a backlog stands", ("column SUBSCRIPTIONS cause",), (
        *_of("unit/server/live/test_subscriptions", "causes"),
        *_of(_DOING, "for_every_cause_of_a_backlog_there_is_advice_that_can_be_followed"),
        *_of("e2e/admin/test_live_views", "a_backlog_is_seen_with_its_cause_until_it_is_gone"),
    )),
    5: Promise("dead letters by fingerprint", ("screen deadletters", "action groups"), (
        *_of(_SCREENS, "dead_letters_by_what_went_wrong_then_one_edited_and_put_back"),
        *_of("unit/broker/replay/test_entry_messages", "what_differs_from_time_to_time_does_not_count"),
    )),
    6: Promise("dead letters put back by a job", ("action dlq replay", "action edit", "screen jobs"), (
        *_of(_TOP, "a_dead_letter_is_found_edited_and_put_back"),
        *_of(_SCREENS, "what_is_left_is_that_of_the_subscription_which_keeps_the_dead_letters"),
        *_of(_JOBS, "a_job_over_a_kill", "what_comes_straight_back_stops_it"),
        *_of("unit/broker/replay/test_circuit_breaker", "what_another_subscription_gives_up_stops_it"),
        *_of("unit/broker/replay/test_runner_crashes", "exactly_once_whatever_happens_when"),
    )),
    7: Promise("dead letters that are lost", ("column DEAD_LETTERS lost", "action sub create"), (
        *_of(_SCREENS, "every_screen_at_any_size"),
        *_of("unit/server/live/test_dead_letters", "topics_that_are_called_so_by_clients_and_where_they_come_from"),
    )),
    8: Promise("messages", ("action messages", "action go to", "action follow", "action form", "action difference"), (
        *_of(_SCREENS, "messages_are_browsed_both_ways_and_nothing_is_acknowledged"),
        *_of("unit/tui/test_feed_sizes", "what_is_huge_is_cut_and_says_how_much_of_it_there_is"),
        *_of("e2e/admin/test_browse", "batches_of_avro_are_decoded_found_and_left_alone"),
        *_of("e2e/tui/test_top_strain", "messages_of_any_size_are_browsed_in_little_room"),
    )),
    9: Promise("one filter language", ("action filter", "option --filter"), (
        *_of(_SCREENS, "a_filter_is_a_word_a_pattern_or_an_expression"),
        *_of(_TOP, "one_look_as_text_as_json_and_as_a_picture"),
        *_of("e2e/admin/test_events", "a_follower_goes_on_over_a_restart"),
        *_of("e2e/cli/test_cli_messages", "only_what_was_read_is_acknowledged"),
        *_of("e2e/cli/test_dead_letter_jobs", "what_the_box_moved_is_put_back"),
    )),
    10: Promise("commands and palette", ("action command",), (
        *_of(_DOING, "words_and_palette_do_the_same_as_keys",
             "every_action_has_a_name_of_its_own_and_no_two_the_same_key"),
        *_of(_EVERY, "every_action_is_looked_at", "an_action_does_what_it_says"),
    )),
    11: Promise("the command that does the same", ("action copy",), (
        *_of(_DOING, "the_command_of_a_deed_is_one_that_there_is", "a_line_can_be_pasted_into_a_shell"),
        *_of("e2e/tui/test_top_deeds", "a_deed_does_the_same_by_its_command", "every_deed_is_compared"),
    )),
    12: Promise("typed names, frozen targets, read-only, a colour for production",
        ("option --read-only", "option --label", "option --label-color"), (
        *_of(_DOING, "a_backlog_is_cleared_once_its_name_is_typed_and_only_that_one"),
        *_of(_LINKS, "read_only_is_the_word_of_the_box_or_of_the_option"),
        *_of(_EVERY, "a_deed_is_asked_for_in_its_dialog_and_then_of_the_box",
             "where_nothing_may_be_changed_no_deed_is_done"),
        *_of(_LOOKS, "a_box_with_a_label_looks_different_on_every_screen_and_in_the_dialogs"),
        *_of("e2e/tui/test_top_strain", "a_label_on_the_command_line_is_over_the_screen_and_in_its_dialogs"),
    )),
    13: Promise("pause, interval, how old it is, nothing asked below a dialog",
        ("action pause", "action faster", "action slower", "action refresh", "option --interval"), (
        *_of(_LINKS, "it_asks_by_itself_but_not_below_a_dialog_nor_paused", "old_numbers_say_how_old_they_are"),
        *_of("e2e/tui/test_top_strain", "over_a_link_that_stands_still_it_says_how_old_all_is_and_keys_work"),
    )),
    14: Promise("history", (
        "action time travel", "action earlier", "action later", "action much earlier", "action much later",
        "action live", "option --at"), (
        *_of(_SCREENS, "back_in_time_and_forth"),
        *_of(_LINKS, "times_of_history_are_by_the_clock_of_the_box"),
        *_of(_JOURNEYS, "back_to_last_night_step_by_step_and_on_to_now"),
        *_of("e2e/admin/test_history", "the_backlog_of_before_the_kill"),
    )),
    15: Promise("cursor map", ("action cursor map",), (
        *_of(_SCREENS, "a_cursor_and_the_keys_of_a_subscription_as_maps",
             "a_part_of_the_log_is_told_by_what_matters_most"),
    )),
    16: Promise("Key_Shared map", ("action key map",), (
        *_of("unit/tui/screens/maps/test_key_bar", "a_cell_has_the_letter_of_the_consumer_with_most_of_it",
             "a_cell_shows_the_worst_of_its_keys"),
        *_of(_JOURNEYS, "a_key_that_stands_still_is_set_going_again"),
    )),
    17: Promise("storage", ("screen storage",), (
        *_of("unit/tui/screens/test_storage", "numbers_of_the_store_stand_beside_each_other_where_there_is_room"),
    )),
    18: Promise("a box that does not run", ("option --data-dir",), (
        *_of("e2e/cli/test_dead_box", "the_backlogs_holes_and_dead_letters_of_a_box_that_was_killed"),
        *_of(_JOURNEYS, "what_a_dead_box_holds_is_seen_and_nothing_of_it_is_touched"),
    )),
    19: Promise("plugins", ("screen plugins",), (*_of(_SCREENS, "every_screen_at_any_size"),)),
    20: Promise("clients, and letting one go", ("screen clients", "action client kick"), (
        *_of("e2e/admin/test_live_views", "clients_that_are_let_go_come_back_and_nothing_is_lost"),
    )),
    21: Promise("one look", ("option --once", "option --output"), (
        *_of(_TOP, "one_look_as_text_as_json_and_as_a_picture", "without_a_terminal_or_a_box_it_says_what_to_do"),
    )),
    22: Promise("in a browser", ("option --serve", "option --serve-port"), (
        *_of("e2e/tui/test_serve", "a_page_is_a_dashboard_and_ctrl_c_ends_all_of_it",
             "only_who_has_the_address_is_let_in",
             "addresses_of_the_network_and_taken_ports_are_refused_and_said_why"),
    )),
    23: Promise("themes, NO_COLOR, any size, mouse", ("action theme",), (
        *_of(_LOOKS, "every_text_of_our_themes_can_be_read", "no_colour_loses_nothing"),
        *_of("unit/tui/widgets/test_table", "a_click_points_and_sorts_and_a_second_opens"),
        *_of("unit/tui/screens/test_screens_drawn", "every_screen_looks_as_it_did"),
    )),
    24: Promise("keys of one's own, help of each screen, hints at first", ("action help",), (
        *_of(_SCREENS, "keys_can_be_others", "an_empty_box_says_how_to_begin"),
        *_of("unit/tui/screens/test_screens_drawn", "every_screen_looks_as_it_did"),
    )),
    25: Promise("several boxes, TLS, token",
        ("option --admin-url", "option --token-file", "option --tls-trust-cert-path"), (
        *_of("unit/cli/connect/test_target", "the_option_wins_over_the_environment_and_this_over_the_box"),
        *_of("e2e/security/test_tls", "commands_trust_whom_they_are_told_to"),
    )),
    26: Promise("columns", ("action columns", "action sort", "action reverse"), (
        *_of(_SCREENS, "order_and_columns_are_kept_for_the_next_time"),
    )),
    27: Promise("export", ("action export", "action export csv"), (*_of(_SCREENS, "all_rows_are_written_to_a_file"),)),
    28: Promise("nothing that comes from clients speaks to the terminal", ("screen deadletters", "action messages"), (
        *_of(_LINKS, "nothing_that_comes_from_the_box_speaks_to_the_terminal"),
        *_of(_SCREENS, "payloads_of_all_kinds_are_fit_for_a_terminal"),
        *_of(_TOP, "no_escape_of_a_client_reaches_the_terminal"),
    )),
    30: Promise("events", ("screen events",), (
        *_of(_SCREENS, "events_are_added_and_jobs_are_paused_from_here"),
        *_of("e2e/admin/test_events", "a_follower_goes_on_over_a_restart"),
    )),
}  # fmt: skip
"""By their original numbers. Number 29, user-defined commands, was deferred."""


@cache
def functions_of(file: str) -> frozenset[str]:
    """Return the tests in a file."""
    tree = ast.parse((TESTS / f"{file}.py").read_text("utf-8"))
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("number", PROMISES)
def test_what_was_promised_is_there(number: int) -> None:
    options = {name for parameter in top.params for name in parameter.opts}
    for kept in PROMISES[number].kept_by:
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
            assert isinstance(view, TableView) and set(keys) <= {column.key for column in view.columns}


@pytest.mark.parametrize("number", PROMISES)
def test_what_was_promised_is_proved(number: int) -> None:
    assert PROMISES[number].proved_by
    for proof in PROMISES[number].proved_by:
        file, _, name = proof.partition("::")
        assert name in functions_of(file), proof


def test_every_row_is_here() -> None:
    assert sorted({*PROMISES, 29}) == list(range(1, 31))
