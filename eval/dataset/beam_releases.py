"""The forms of BEAM that are known by their digests."""

from pathlib import Path

from eval.dataset.card import PinnedFile, Release

_DEVELOPMENT = {
    "beam_100K_dev.jsonl.gz": "d6d17a5a49cb1cd729041aaa83a967bd764c326db1f1d3eb585af421dfd1c38b",
    "beam_500K_dev.jsonl.gz": "663d6e538440eaa356d7eb3bb3cf435d2b8a93334bc5224fb19bd1f50b40dd0b",
    "beam_1M_dev.jsonl.gz": "a5ff993b13ed68fbb26559db2e646e16dc8b7773918d3f4cf3b3169a286a2234",
}
_REPOSITORY = "b2a3ee8ba12d68f83143dda191097dc3e028ddd3"
_ADDRESS = f"https://raw.githubusercontent.com/mohammadtavakoli78/BEAM/{_REPOSITORY}/"
_SUMS = Path(__file__).with_name("beam.sha256")
"""The digests of the repository's files, as `sha256sum -c` reads them in a checkout of it."""

_HUB = "https://huggingface.co/datasets/Mohammadta/"
_SIZES = f"{_HUB}BEAM/resolve/3205395e897e7318c7b094ef4e6047b9b82dbb03/"
_LARGEST = f"{_HUB}BEAM-10M/resolve/main/"


def _folders(size: str) -> Release:
    sums = [line.split() for line in _SUMS.read_text("ascii").splitlines()]
    return Release(
        name=f"folders_{size}",
        title=f"mohammadtavakoli78/BEAM commit {_REPOSITORY[:12]}, chats/{size}",
        files=tuple(PinnedFile(path, digest) for digest, path in sums if path.startswith(f"chats/{size}/")),
        url=None if size == "1M" else _ADDRESS,  # the digests of 26 of its 35 chats are not known
    )


def _tables(size: str, url: str, *files: tuple[str, str, int | None]) -> Release:
    """File name, digest, size in bytes."""
    return Release(
        name=f"parquet_{size}",
        title=f"{size} of {url.removeprefix('https://').split('/resolve')[0]}",
        files=tuple(PinnedFile(f"data/{name}.parquet", digest, length) for name, digest, length in files),
        url=url,
    )


RELEASES = (
    Release(
        name="development",
        title=f"12, 21 and 5 conversations of mohammadtavakoli78/BEAM commit {_REPOSITORY[:12]}",
        files=tuple(PinnedFile(name, digest) for name, digest in _DEVELOPMENT.items()),
        is_told=False,
    ),
    _folders("100K"),
    _folders("500K"),
    _folders("1M"),
    _tables(
        "100K",
        _SIZES,
        ("100K-00000-of-00001", "c0519be25907005ba873c927c50877471d550873039d96c041554d0075a78ace", 5_429_768),
    ),
    _tables(
        "500K",
        _SIZES,
        ("500K-00000-of-00001", "af05921c979355038e1761b7cde3d2dd713200dd3071b278de0200f6c7f30122", 33_956_263),
    ),
    _tables(
        "1M",
        _SIZES,
        ("1M-00000-of-00001", "41b5acbbb55a586b1305514ef9d9fb03365d9b3331b598a1c2dd7603d93ef533", 66_156_374),
    ),
    _tables(
        "10M",
        _LARGEST,
        ("10M-00000-of-00002", "31d96fd47ec56221d202e68792f26c00e49467dd4b36ee105c36ebd19ef78ad5", None),
        ("10M-00001-of-00002", "a4f13fe25af51d57405ae41008689c31d1421377f3efde56a024b441deb2ee65", None),
    ),
)
