"""House style of the documentation: banned phrases, and the checks of proselint."""

import re
from typing import Final, NamedTuple


class Phrase(NamedTuple):
    """A pattern that no sentence may contain, and what to write instead."""

    name: str
    pattern: re.Pattern[str]
    instead: str


SENTENCE_WORDS_MAX: Final = 40
"""Maximum words per sentence. Aim at 25."""
NAMES_OF_A_LIST: Final = 8
"""A sentence with this many code spans, or one that begins with "Fields:", is a list of names and may be long."""


def _phrase(name: str, pattern: str, instead: str, flags: re.RegexFlag = re.IGNORECASE) -> Phrase:
    return Phrase(name, re.compile(pattern, flags), instead)


OPENINGS: Final = (
    _phrase(
        "noun-clause",
        r"\A[\"(*]*(?:Who|Whoever|Whose|What|Whatever|Whether|Where|Which)\b(?!.*\?\W*\Z)",
        "name the subject (a client, the broker, messages), or begin a condition with If or When",
        re.DOTALL,
    ),
)
"""Forbidden openings of a sentence. A question is exempt."""

PHRASES: Final = (
    _phrase(
        "noun-clause-after-colon",
        r"[:;] (?:who|whoever|what|whatever|whether) (?!to\b)",
        "name the subject: a client, the reason, the state",
        re.NOFLAG,
    ),
    _phrase(
        "is-told",
        r"\b(?:is|are|was|were|be|been|being) told\b",
        "write receives, is notified, gets the error, or is reported",
    ),
    _phrase(
        "tells-of", r"\btells? (?:of|it|them|what|which|how|why|whether|when|where|so)\b", "write reports or shows"
    ),
    _phrase(
        "says",
        r"\bsays? (?:so|why|what|where|which|how|that|whether|when|no|nothing|it)\b",
        "write states, reports or shows",
    ),
    _phrase("let-go", r"\b(?:lets?|letting) (?:\w+ )?go\b", "write release, disconnect or free"),
    _phrase(
        "of-its-own",
        r"\b(?:of|on) (?:its|their|his|one's|your|our) own\b",
        "write its own ..., a separate ..., or a custom ...",
    ),
    _phrase("by-itself", r"\bby (?:itself|themselves|himself)\b", "write automatically, alone or separately"),
    _phrase(
        "what-comes",
        r"\bwhat (?:comes?|came|there|goes|is there|was there)\b",
        "name it: new messages, stored messages",
    ),
    _phrase(
        "comes-again",
        r"\b(?:comes?|came|coming) (?:again|back again|along|into being|by)\b",
        "write is redelivered, is included, is created",
    ),
    _phrase(
        "goes",
        r"\b(?:goes|went|gone) (?:on|out|away|along|by|alone|with)\b",
        "write continues, is sent, disconnects or is removed",
    ),
    _phrase(
        "stands",
        r"\b(?:stands?|stood) (?:in|at|on|behind|before|beside|below|above|there|still|where|here|by|as|together)\b",
        "write is, is stored, is listed or is blocked",
    ),
    _phrase(
        "nobody",
        r"\b(?:nobody|anybody|somebody|everybody|whoever)\b",
        "name the party: no client, any user, another process",
    ),
    _phrase(
        "is-no",
        r"\b(?<!there )(?:is|are) no (?!(?:longer|more|less|other|different|later|larger|better|smaller)\b)",
        "write is not a ..., or invalid ...; expected ...",
    ),
    _phrase(
        "where-it",
        r"\bwhere (?:(?:that|this|there|none|nothing) (?:is|are|was|can|may|has)|it (?:can|may|has|does|fails|runs))\b",
        "write if or when",
    ),
    _phrase("for-good", r"\bfor good\b", "write permanently"),
    _phrase("at-the-instant", r"\b(?:at|by) the instant\b", "write immediately, or on time"),
    _phrase("in-silence", r"\bin silence\b", "write silently"),
    _phrase("knows-nothing", r"\bknows? (?:nothing|not|no)\b", "write is independent of, or does not use"),
    _phrase("looked-at", r"\blook(?:s|ed|ing)? (?:at|into)\b", "write check, read or inspect"),
    _phrase("taken-for", r"\b(?:takes?|taken|took) (?:for|it for|the place of)\b", "write is treated as, or replaces"),
    _phrase(
        "is-there",
        r"\b(?:is|are|was|were) there\b(?! (?:a|an|any|no|more|is|are)\b)(?!\?)",
        "write exists, is present or is available",
    ),
    _phrase(
        "as-it-is",
        r"\b(?<!long )as (?:it|they) (?:is|are|came|stands?|stood|was|were)(?=\s*[.,;:)]|\s*\Z| and\b| or\b)",
        "write unchanged, or unmodified",
    ),
    _phrase(
        "all-that",
        r"\b(?:all|everything) (?:that|of it) (?:is|was|it|there|comes?|has)\b",
        "name it: all messages, the whole file",
    ),
    _phrase(
        "of-which", r"\bof (?:which|what|whom) \w+ (?:\w+ )?(?:is|are|has|have|was|were|can)\b", "begin a new sentence"
    ),
    _phrase("so-chain", r"\bso that\b[^.]*\bso that\b", "one purpose a sentence"),
    _phrase("no-good", r"\bmeans? no good\b", "write hostile"),
    _phrase("in-the-way", r"\bin the way of\b", "write prevent or block"),
    _phrase("to-mend", r"\b(?:mend(?:s|ed)?|spelt|misspelt)\b", "write fix, spelled, misspelled"),
)

PROSELINT_CHECKS: Final = {
    "annotations": True,
    "archaism": True,
    "cliches": True,
    "dates_times": True,
    "hedging": True,
    "lexical_illusions": True,
    "malapropisms": True,
    "misc.phrasal_adjectives": False,
    "misc": True,
    "mixed_metaphors": True,
    "mondegreens": True,
    "needless_variants": True,
    "nonwords": True,
    "oxymorons": True,
    "redundancy": True,
    "spelling": True,
    "terms": True,
    "weasel_words": True,
}
"""Without typography (the pages are ASCII), business language, sensitive words, and uncomparables (1.5 s a run).

The first key that is a prefix of a check decides: "exactly-once semantics" is a term.
"""
