"""How long a regular expression becomes when its counted repetitions are written out, as its compiler does."""

import re

_PIECE = re.compile(
    r"""
      (?P<count> \{ \s* (?P<least>\d*) \s* (?: , \s* (?P<most>\d*) \s* )? \} )
    | (?P<atom> \\. | \[ \^? \]? (?: \\. | [^\]\\] )* \]? | . )
    """,
    re.VERBOSE | re.DOTALL,
)


def written_out_steps(pattern: str) -> int:
    """The characters and sets of a pattern, each as often as the repetitions around it say, at most.

    A repetition without an upper end counts as often as its lower one, for it is a loop. Where the syntax leaves a
    brace without a meaning, what it counts too many is refused too much.
    """
    groups, last = [0], 0
    """Steps of the groups that are open, the outermost first; and of the piece that a repetition would repeat."""
    for piece in _PIECE.finditer(pattern):
        if piece["count"] and (piece["least"] or piece["most"]):
            times = max(int(piece["least"] or 0), int(piece["most"] or 0), 1)
            groups[-1] += last * (times - 1)
            last *= times
        elif piece[0] == "(":
            groups.append(0)
            last = 1
        elif piece[0] == ")" and len(groups) > 1:
            last = groups.pop() + 1
            groups[-1] += last
        elif piece[0] not in "*+?":
            last = 1
            groups[-1] += 1
    return sum(groups)
