"""The prose linter: parsing of Markdown, and each rule."""

import pytest

from tests.tools.prose import Passage, findings, passages, sentences, texts, words
from tests.tools.prose_rules import OPENINGS, PHRASES, SENTENCE_WORDS_MAX

PAGE = """# A title

One sentence of
two lines. Another with `code in it`, a [link](page.md#part) and e.g. an abbreviation.

    $ code --that is not read

- an item
  over two lines
- `pulsarbox stop`, v1.5

      code in a list

```python
who = "asks"
```

| Column | Meaning |
|---|---|
| `a\\|b` | a cell |

<!-- from a table -->
Whoever generates this.
<!-- end -->

The end.
"""


def _sentence(count: int) -> str:
    return " ".join(f"word{number}" for number in range(count)) + "."


EXAMPLES = {
    "noun-clause": ("What was published is on disk.", "Published messages are on disk."),
    "noun-clause-after-colon": ("The log has it: who did it, and when.", "The log has the role and the time."),
    "is-told": ("The client is told that it expired.", "The client receives an error."),
    "tells-of": ("The metric tells how long it took.", "The metric reports the duration."),
    "says": ("The message says why.", "The message gives the reason."),
    "let-go": ("The box lets clients go.", "The box disconnects clients."),
    "of-its-own": ("It has a directory of its own.", "It has its own directory."),
    "by-itself": ("It starts again by itself.", "It restarts automatically."),
    "what-comes": ("Show what comes.", "Show new messages as they arrive."),
    "comes-again": ("The message comes again.", "The message is redelivered."),
    "goes": ("The message goes out.", "The message is sent."),
    "stands": ("The key stands in the header.", "The header contains the key."),
    "nobody": ("Nobody consumes the topic.", "The topic has no consumer."),
    "is-no": ("The token is no token.", "The token is invalid."),
    "where-it": ("Use it where there is no client.", "Use it if no client is available."),
    "for-good": ("The topic ends for good.", "The topic ends permanently."),
    "at-the-instant": ("It expires at the instant.", "It expires immediately."),
    "in-silence": ("Messages are dropped in silence.", "Messages are dropped silently."),
    "knows-nothing": ("The core knows nothing of sockets.", "The core does not use sockets."),
    "looked-at": ("It is looked at each minute.", "It is checked each minute."),
    "taken-for": ("It is taken for a key.", "It is treated as a key."),
    "is-there": ("The topic is there.", "The topic exists."),
    "as-it-is": ("The payload is stored as it came.", "The payload is stored unchanged."),
    "all-that": ("It deletes all that is old.", "It deletes all old messages."),
    "of-which": ("There are two, of which one is old.", "There are two. One is old."),
    "so-chain": ("Do this so that it works so that it helps.", "Do this so that it works."),
    "no-good": ("Clients that mean no good.", "Hostile clients."),
    "in-the-way": ("It is in the way of a start.", "It prevents a start."),
    "to-mend": ("The name was misspelt.", "The name was misspelled."),
    "long-sentence": (_sentence(SENTENCE_WORDS_MAX + 1), _sentence(SENTENCE_WORDS_MAX)),
    "lexical_illusions": ("It is in the the log.", "It is in the log."),
    "archaism": ("It runs for ever.", "It runs forever."),
}


def rules(text: str) -> set[str]:
    return {finding.rule for finding in findings("page.md", passages(text))}


def test_a_page_is_its_prose_with_line_numbers() -> None:
    assert passages(PAGE) == [
        Passage(1, "A title"),
        Passage(3, "One sentence of\ntwo lines. Another with code, a link and e.g. an abbreviation."),
        Passage(8, "an item\n  over two lines"),
        Passage(10, "code, v1.5"),
        Passage(18, "Column"),
        Passage(18, "Meaning"),
        Passage(20, "code"),
        Passage(20, "a cell"),
        Passage(26, "The end."),
    ]


def test_sentences_know_their_lines() -> None:
    paragraph = passages(PAGE)[1]
    assert list(sentences(paragraph)) == [
        Passage(3, "One sentence of\ntwo lines."),
        Passage(4, "Another with code, a link and e.g. an abbreviation."),
    ]
    assert words("The `--all` option takes 1,000 rows.") == 6


def test_a_finding_names_file_line_rule_and_advice() -> None:
    (finding,) = findings("docs/x.md", passages("Fine.\n\nA client\nis told so.\n"))
    assert (
        str(finding) == 'docs/x.md:4: is-told: "is told": write receives, is notified, gets the error, or is reported'
    )


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_rule_fires_and_accepts_the_better_sentence(rule: str) -> None:
    worse, better = EXAMPLES[rule]
    assert rule in rules(worse)
    assert rules(better) == set()


def test_a_finding_of_proselint_has_its_line() -> None:
    (finding,) = findings("page.md", passages("# Title\n\nFine.\n\nIt is in\nthe the log.\n"))
    assert (finding.line, finding.rule) == (6, "lexical_illusions")


def test_every_rule_of_the_house_has_an_example() -> None:
    assert {phrase.name for phrase in (*OPENINGS, *PHRASES)} <= EXAMPLES.keys()


def test_a_question_may_begin_with_its_word() -> None:
    assert rules("What is stored in the directory?") == set()


def test_a_list_of_names_may_be_long() -> None:
    assert rules(", ".join(f"`name{n}` (the number of something)" for n in range(10))) == set()
    assert rules("Fields: " + ", ".join(f"name{n} (the number of something)" for n in range(10))) == set()


def test_help_texts_are_read() -> None:
    assert any(file.startswith("pulsarbox/cli/") for file in texts())
