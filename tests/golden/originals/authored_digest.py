"""What the plugin tells by whether an authored file has changed, and whether its blocks are known.

Source: libravdb memory 1.4.4.
"""

import hashlib

_START = 0x14650FB0739D0383
"""Not the offset of FNV-1a, which has the same prime."""
_PRIME = 0x100000001B3
_MASK = (1 << 64) - 1


def content_hash(text: str) -> str:
    """64 bits in hex: each byte of the UTF-8 text is xored in, then the sum multiplied by a prime."""
    found = _START
    for byte in text.encode("utf-8", "surrogatepass"):
        found = (found ^ byte) * _PRIME & _MASK
    return f"{found:016x}"


def cache_key(raw: bytes, tokenizer_id: str) -> str:
    """By what the blocks of a file may be kept: its bytes, and what counted its tokens; SHA-256 in hex."""
    return hashlib.sha256(raw + b"\x00" + tokenizer_id.encode()).hexdigest()
