"""Kinds of what nobody should find in a file: a text that holds one, and the part that must not be left."""

import gzip
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import polars as pl

_LONG = "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MEFCQ0RFRkdISUpLTE1OT1BRUlNUVVZXWFla"


def told_in(path: Path) -> bytes:
    """What a file holds: its bytes, and unpacked what Parquet, Arrow, SQLite, gzip or an archive keeps otherwise."""
    content = path.read_bytes()
    said = [content]
    if content.startswith(b"PAR1"):
        said.append(str(pl.read_parquet(content).rows()).encode())
    elif (begin := content.find(b"ARROW1\0\0")) >= 0:  # a cached frame, behind its check
        said.append(str(pl.read_ipc(content[begin:]).rows()).encode())
    elif content.startswith(b"\x1f\x8b"):
        said.append(gzip.decompress(content))
    elif content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(path) as archive:
            said += map(archive.read, archive.namelist())
    elif content.startswith(b"SQLite format 3"):
        with closing(sqlite3.connect(path)) as database:
            database.text_factory = bytes
            for (table,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
                said += (
                    cell if isinstance(cell, bytes) else str(cell).encode()
                    for row in database.execute(f'SELECT * FROM "{table.decode()}"')
                    for cell in row
                )
    return b"\n".join(said)


def _whole(secret: str) -> tuple[str, str]:
    return f"the key is {secret}", secret


# Put together here, so that no scanner of this repository takes one for real.
SECRETS = {
    "OpenAI": _whole("sk" + "-proj-4f8s7d6f5g4h3j2k1l0q9w8e"),
    "Anthropic": _whole("sk" + "-ant-api03-a8s7d6f5g4h3j2k1l0q9w8e-AA"),
    "OpenRouter": _whole("sk" + "-or-v1-0123456789abcdef0123456789abcdef"),
    "GitHub": _whole("gh" + "p_a8s7d6f5g4h3j2k1l0q9w8e7r6t5y4u3i2o1"),
    "GitHub, fine-grained": _whole("github" + "_pat_11ABCDEFG0a8s7d6f5g4h3j2k1l0q9w8e7r6t5"),
    "GitLab": _whole("gl" + "pat-a8s7d6f5g4h3j2k1l0q9"),
    "AWS id": _whole("AK" + "IAIOSFODNN7EXAMPLE"),
    "AWS secret": ("aws_secret_access_key=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMIK7MDENGbPxRfiCY"),
    "Google": _whole("AI" + "zaSyA8s7d6f5g4h3j2k1l0q9w8e7r6t5y4u3i"),
    "Slack": _whole("xo" + "xb-123456789012-a8s7d6f5g4h3j2k1"),
    "Hugging Face": _whole("h" + "f_a8s7d6f5g4h3j2k1l0q9w8e7r6t5y4"),
    "Jina": _whole("ji" + "na_a8s7d6f5g4h3j2k1l0q9w8e7r6t5y4"),
    "npm": _whole("np" + "m_a8s7d6f5g4h3j2k1l0q9w8e7r6t5y4u3i2o1"),
    "PyPI": _whole("py" + "pi-AgEIcHlwaS5vcmcCJGE4czdkNmY1ZzRo"),
    "Stripe": _whole("sk" + "_live_a8s7d6f5g4h3j2k1l0q9w8e7"),
    "SendGrid": _whole("SG" + ".a8s7d6f5g4h3j2k1l0q9w8.e7r6t5y4u3i2o1p0a9s8d7f6g5h4j3k2l1z0x9c8v7"),
    "JSON Web Token": _whole("ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJlLW9mLWFkYQ"),
    "bearer": ("Authorization: Bearer a8s7d6f5g4h3j2k1l0", "a8s7d6f5g4h3j2k1l0"),
    "basic": ("Authorization: Basic YWRhOmxvdmVsYWNl", "YWRhOmxvdmVsYWNl"),
    "URL": ("https://ada:lovelace1815@example.org/path", "lovelace1815"),
    "xAI": _whole("xa" + "i-a8s7d6f5g4h3j2k1l0q9w8e7r6t5y4"),
    "NVIDIA": _whole("nv" + "api-a8s7d6f5g4h3-j2k1l0q9w8e7r6t5y4"),
    "Vault": _whole("hv" + "s.CAESIa8s7d6f5g4h3j2k1l0q9"),
    "Shopify": _whole("sh" + "pat_a8s7d6f5g4h3j2k1l0q9w8e7r6t5y4u3"),
    "Docker": _whole("dc" + "kr_pat_a8s7d6f5g4h3-j2k1l0q9w8e"),
    "Stripe, webhook": _whole("wh" + "sec_a8s7d6f5g4h3/j2k1l0q9w8e7+r6t5y4="),
    "token": ("Authorization: Token a8s7d6f5g4h3j2k1l0", "a8s7d6f5g4h3j2k1l0"),
    "Azure": ("AccountName=ada;AccountKey=YWRh+bG92ZWxh/Y2U4MTU4MTU=;End", "YWRh+bG92ZWxh"),
    "Azure, signed": ("https://ada.example.org/c?sv=2024&sig=YWRhbG92ZWxhY2U%3D&se=2027", "YWRhbG92ZWxhY2U"),
    "URL, token": ("https://a8s7d6f5g4h3j2k1l0q9@example.org/path", "a8s7d6f5g4h3j2k1l0q9"),
    "URL, any password": ("postgres://ada:lo/ve@l@ce1815@example.org/path", "l@ce1815"),
    "words": ('{"password": "correct horse battery staple"}', "horse battery"),
    "private key": (
        f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{_LONG}\n{_LONG}\n-----END RSA {'PRIVATE'} KEY-----",
        _LONG,
    ),
    "password": ("password=correct-horse-battery", "correct-horse"),
    "client secret": ("client_secret: q9w8e7r6t5y4u3i2o1p0", "q9w8e7r6t5"),
    "session token": ("session_token=q0w9e8r7t6y5u4i3o2p1", "q0w9e8r7t6"),
}
