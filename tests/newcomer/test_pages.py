"""Parsing of pages, and that the newcomer's pages have commands to try."""

from pathlib import Path

from tests.newcomer.pages import Command, File, Section, sections

ROOT = Path(__file__).parents[2]

PAGE = """# Title

Words, and `inline words`.

    one --option   # a comment

## Shown

    $ two
    first line
    second line
    $ three

`src/main.rs`:

```rust
fn main() {
}
```

### Empty

Nothing to do.
"""


def test_a_page_is_its_commands_and_files_in_order() -> None:
    assert sections(PAGE) == [
        Section("Title", (Command("one --option   # a comment"),)),
        Section(
            "Shown",
            (
                Command("two", ("", "first line", "second line")),
                Command("three", ("",)),
                File("rust", "src/main.rs", "fn main() {\n}\n"),
            ),
        ),
    ]


def test_the_pages_of_the_newcomer() -> None:
    readme = [step for section in sections((ROOT / "README.md").read_text()) for step in section.steps]
    quickstart = {section.title: section.steps for section in sections((ROOT / "docs" / "quickstart.md").read_text())}
    assert {step.language for step in readme if isinstance(step, File)} == {"python"}
    assert "pulsarbox start --detach" in {step.text.partition("#")[0].strip() for step in readme}
    assert {"Install", "Start", "Stop", "A first message", "Go", "Java", "Rust", "Node"} <= quickstart.keys()
