"""Bytes near those of a real file: pieces of it cut out, doubled, or put in another place, and foreign ones between."""

from collections.abc import Sequence

from hypothesis import strategies as st


@st.composite
def changed(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds, changed in one to six places."""
    content = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(content)))
        end = min(len(content), at + draw(st.integers(0, 64)))
        between = draw(
            st.one_of(
                st.just(b""),
                st.just(content[at:end] * 2),
                st.binary(max_size=8),
                st.sampled_from([b'"', b"{", b"]", b"null", b"1e999", b"\x00", b"\xff", b"\n", b"${x}", b"..", b"-"]),
                st.integers(0, len(content)).map(lambda start, text=content: text[start : start + 40]),
            )
        )
        content = content[:at] + between + content[end:]
    return content
