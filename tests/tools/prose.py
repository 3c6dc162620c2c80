"""Prose linter of the documentation: proselint's checks, and the house style of this project.

`python -m tests.tools.prose` checks README.md, CHANGELOG.md, docs/*.md and the help texts of the commands, and prints
`file:line: rule: what to write instead`. `make lint` runs it. `--readability` prints the words per sentence of each
page.

Code blocks, HTML and generated sections are skipped. Inline code counts as one word.
"""

import argparse
import inspect
import re
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Final, NamedTuple

from tests.tools.prose_rules import NAMES_OF_A_LIST, OPENINGS, PHRASES, PROSELINT_CHECKS, SENTENCE_WORDS_MAX, Phrase

ROOT: Final = Path(__file__).parents[2]

_FENCE = re.compile(r"^ {0,7}(```|~~~)")
_GENERATED = re.compile(r"^<!-- (?:\w+, )?from .* -->$")
_LIST_ITEM = re.compile(r"^ *(?:[-*+]|\d+\.) +")
_TABLE_RULE = re.compile(r"^\|[ :|-]+\|$")
_CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)|\{\{.*?\}\}", re.DOTALL)
_IMAGE_OR_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_URL = re.compile(r"<?https?://\S+>?")
_SENTENCE_END = re.compile(r"(?<![.\s][A-Za-z])(?<!e\.g)(?<!i\.e)(?<!vs)[.!?][\"')*]*(?=\s)")
_WORD = re.compile(r"[A-Za-z0-9][\w'.,:/%+-]*")
_CELL_END = re.compile(r"(?<!\\)\|")


class Passage(NamedTuple):
    """A paragraph, heading, list item or table cell, without markup. Code spans read `code`."""

    line: int
    text: str


@dataclass(frozen=True, order=True)
class Finding:
    """A rule that a text breaks."""

    file: str
    line: int
    rule: str
    advice: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}: {self.advice}"


# ----------------------------------------------------------------------------------------------------------- Markdown


def passages(markdown: str) -> list[Passage]:
    """Return the prose of a Markdown page."""
    found: list[Passage] = []
    gathered: list[str] = []
    first = 0

    def flush() -> None:
        if gathered:
            found.append(Passage(first, plain("\n".join(gathered))))
            gathered.clear()

    for number, line in _prose_lines(markdown):
        if not line.strip():
            flush()
        elif line.startswith("|"):
            flush()
            if not _TABLE_RULE.match(line):
                found.extend(Passage(number, plain(cell.strip())) for cell in _CELL_END.split(line.strip()[1:-1]))
        elif line.startswith("#"):
            flush()
            found.append(Passage(number, plain(line.lstrip("#").strip())))
        else:
            if _LIST_ITEM.match(line):
                flush()
            if not gathered:
                first = number
            gathered.append(_LIST_ITEM.sub("", line))
    flush()
    return [passage for passage in found if passage.text]


def plain(text: str) -> str:
    """Return a text without the markup of code spans, links and URLs, with its line ends."""
    text = _CODE_SPAN.sub(lambda span: "code" + "\n" * span[0].count("\n"), text)
    text = _IMAGE_OR_LINK.sub(r"\1", text)
    return _URL.sub("URL", text).replace("**", "")


def _prose_lines(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield line numbers and lines; those of code, comments and generated sections are empty."""
    fence = ""
    generated = in_list = False
    blank_before = True
    for number, line in enumerate(markdown.split("\n"), 1):
        if mark := _FENCE.match(line):
            fence = "" if fence == mark[1] else fence or mark[1]
            yield number, ""
            continue
        generated = generated or _GENERATED.match(line) is not None
        in_list = in_list or _LIST_ITEM.match(line) is not None
        if line and not line.startswith(" ") and not _LIST_ITEM.match(line):
            in_list = False if blank_before else in_list
        # Indented code needs a preceding blank line, and six columns inside a list.
        is_code = blank_before and line.startswith("      " if in_list else "    ") and not _LIST_ITEM.match(line)
        skipped = fence or generated or is_code or line.startswith("<")
        yield number, "" if skipped else line
        if line == "<!-- end -->":
            generated = False
        blank_before = not line.strip() or is_code


def sentences(passage: Passage) -> Iterator[Passage]:
    """Yield the sentences of a passage, each with the line on which it begins."""
    begin = 0
    text = passage.text
    for end in [*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]:
        piece = text[begin:end]
        sentence = piece.strip()
        if sentence:
            yield Passage(passage.line + text.count("\n", 0, begin + len(piece) - len(piece.lstrip())), sentence)
        begin = end


def words(sentence: str) -> int:
    """Return the number of words of a sentence."""
    return len(_WORD.findall(sentence))


# -------------------------------------------------------------------------------------------------------------- rules


def house_style(file: str, prose: Sequence[Passage]) -> Iterator[Finding]:
    """Yield the violations of the house style: banned phrases, and sentences that are too long."""
    for sentence in (sentence for passage in prose for sentence in sentences(passage)):
        count = words(sentence.text)
        is_list = sentence.text.startswith("Fields:") or sentence.text.count("code") >= NAMES_OF_A_LIST
        if count > SENTENCE_WORDS_MAX and not is_list:
            advice = f"{count} words: split the sentence, {SENTENCE_WORDS_MAX} words at most"
            yield Finding(file, sentence.line, "long-sentence", advice)
        for opening in OPENINGS:
            if match := opening.pattern.match(sentence.text):
                yield _finding(file, sentence.line, opening, match)
    text, lines = _joined(prose)
    for phrase in PHRASES:
        for match in phrase.pattern.finditer(text):
            yield _finding(file, lines[text.count("\n", 0, match.start())], phrase, match)


def _finding(file: str, line: int, phrase: Phrase, match: re.Match[str]) -> Finding:
    return Finding(file, line, phrase.name, f'"{" ".join(match[0].split())}": {phrase.instead}')


def _joined(prose: Sequence[Passage]) -> tuple[str, list[int]]:
    """Return a text with all passages, and for each of its lines the line of the file.

    A line with a dot between two passages ends the sentence. Code spans become different words: a repeated word would
    be a finding.
    """
    parts: list[str] = []
    lines: list[int] = []
    for passage in prose:
        for index, line in enumerate(passage.text.split("\n")):
            words_and_code = line.split("code")
            parts.append("".join(f"{part}code{len(lines)}x{n}" for n, part in enumerate(words_and_code[:-1])))
            parts[-1] += words_and_code[-1]
            lines.append(passage.line + index)
        parts.append(".")
        lines.append(passage.line)
    return "\n".join(parts), lines


def proselint(file: str, prose: Sequence[Passage]) -> Iterator[Finding]:
    """Yield the findings of proselint with the checks of `PROSELINT_CHECKS`."""
    from proselint.checks import __register__ as checks
    from proselint.config import Config
    from proselint.registry import CheckRegistry
    from proselint.tools import LintFile

    registry = CheckRegistry()
    if not registry.checks:
        registry.register_many(checks)
    text, lines = _joined(prose)
    for result in LintFile(file, text).lint(Config(max_errors=1000, checks=PROSELINT_CHECKS)):
        line = lines[min(result.pos[0] - 1, len(lines) - 1)]
        yield Finding(file, line, result.check_result.check_path, " ".join(result.check_result.message.split()))


def findings(file: str, prose: Sequence[Passage]) -> list[Finding]:
    """Return all findings of a text, in its order."""
    return sorted({*house_style(file, prose), *proselint(file, prose)})


# -------------------------------------------------------------------------------------------------------------- texts


def pages() -> dict[str, list[Passage]]:
    """Return the prose of all pages by file name."""
    paths = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {path.relative_to(ROOT).as_posix(): passages(path.read_text("utf-8")) for path in paths}


def help_texts() -> dict[str, list[Passage]]:
    """Return the prose of the help texts by the file of their command, at the line of its function."""
    import click

    from pulsarbox.cli.main import main

    found: dict[str, list[Passage]] = {}
    seen: set[object] = set()

    def gather(command: click.Command, context: click.Context) -> None:
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                if inner := command.get_command(context, name):
                    gather(inner, click.Context(inner, parent=context, info_name=name))
        callback = inspect.unwrap(command.callback) if command.callback else None
        if not isinstance(callback, FunctionType):
            return
        path = Path(callback.__code__.co_filename).resolve()
        help_of_options = [option.help for option in command.params if isinstance(option, click.Option)]
        for text in (command.help, command.short_help, command.epilog, *help_of_options):
            if not text or text in seen:  # commands share options
                continue
            seen.add(text)
            # Paragraphs after \b preserve their lines: they are examples and lists.
            paragraphs = (part for part in text.split("\n\n") if "\b" not in part)
            found.setdefault(path.relative_to(ROOT).as_posix(), []).extend(
                Passage(callback.__code__.co_firstlineno, " ".join(plain(part).split())) for part in paragraphs
            )

    gather(main, click.Context(main, info_name="pulsarbox"))
    return found


def texts() -> dict[str, list[Passage]]:
    """Return all prose that is checked, by file."""
    return pages() | help_texts()


# ------------------------------------------------------------------------------------------------------------ command


def readability(named: Iterable[tuple[str, Sequence[Passage]]]) -> Iterator[str]:
    """Yield a line per page: sentences, and the median and 90th percentile of words per sentence."""
    yield f"{'page':34} {'sentences':>9} {'median':>7} {'p90':>5} {'longest':>8}"
    for file, prose in named:
        counts = [count for passage in prose for sentence in sentences(passage) if (count := words(sentence.text)) > 3]
        if len(counts) > 1:
            p90 = statistics.quantiles(counts, n=10)[8]
            yield f"{file:34} {len(counts):9} {statistics.median(counts):7.1f} {p90:5.1f} {max(counts):8}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.prose", description="Check the prose of the project.")
    parser.add_argument("files", nargs="*", help="files to check; by default all")
    parser.add_argument("--readability", action="store_true", help="print the words per sentence of each page")
    options = parser.parse_args(arguments)
    if options.readability:
        print("\n".join(readability(pages().items())))
        return 0
    prose = texts()
    checked = options.files or list(prose)
    found = [finding for file in checked for finding in findings(file, prose[file])]
    for finding in found:
        print(finding)
    print(f"prose: {len(found)} findings in {len(checked)} files", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
