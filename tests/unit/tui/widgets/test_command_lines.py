"""Command lines in texts."""

from pulsarbox.tui.widgets.command_lines import told_with_target


def test_a_command_in_a_text_names_the_box() -> None:
    told = "No topics. Create one by publishing: pulsarbox produce hello 'Hello, world'"
    assert told_with_target(told, ["--data-dir", "my box"]) == f"{told} --data-dir 'my box'"
    assert told_with_target(told, []) == told
    assert told_with_target("No directories.", ["--data-dir", "box"]) == "No directories."
