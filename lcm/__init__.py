"""lcm, which is installed as lcm-harness."""

__version__ = "0.1.0"
