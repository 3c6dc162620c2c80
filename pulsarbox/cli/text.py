"""Text for a terminal."""


def clean(text: str) -> str:
    """Text that came from elsewhere, without anything that a terminal would obey: such characters show as escapes."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def megabytes(size: int) -> str:
    """Bytes for the eye."""
    if size < 1 << 10:
        return f"{size} B"
    for unit, bits in (("KiB", 10), ("MiB", 20)):
        if size < 1 << (bits + 10):
            return f"{size / (1 << bits):.1f} {unit}"
    return f"{size / (1 << 30):,.2f} GiB"
