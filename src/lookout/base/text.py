"""Text that has to fit."""


def shorten(text: str, longest: int, mark: str = "...") -> str:
    """The text, or as much of its beginning as there is room for, with a mark at its end."""
    return text if len(text) <= longest else text[: longest - len(mark)] + mark
