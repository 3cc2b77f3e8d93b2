"""Texts that begin with a prefix, as a range that an index finds."""


def after_all(prefix: str) -> str | None:
    """The smallest text, by code points, that sorts after every text with the prefix; None if there is none."""
    for end in range(len(prefix), 0, -1):
        following = ord(prefix[end - 1]) + 1
        if following == 0xD800:  # surrogates cannot be stored
            following = 0xE000
        if following <= 0x10FFFF:
            return prefix[: end - 1] + chr(following)
    return None
