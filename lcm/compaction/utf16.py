"""Text cut by UTF-16 units, as JavaScript cuts it."""


def first_units(text: str, units: int) -> str:
    """The first UTF-16 units of a text; the cut may leave half of a surrogate pair."""
    text = text[:units]
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "surrogatepass")
