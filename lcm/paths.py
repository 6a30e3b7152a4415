"""Where derived things are kept between runs."""

import os
from pathlib import Path

import platformdirs


def cache_dir() -> Path:
    """`LCM_CACHE_DIR`, else the user's cache folder. Whatever is in it can be deleted and is made again."""
    named = os.environ.get("LCM_CACHE_DIR")
    return Path(named).expanduser() if named else Path(platformdirs.user_cache_dir("lcm", appauthor=False))
