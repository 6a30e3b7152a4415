"""`python -m lcm`: the command `lcm` of the very Python that runs it."""

from importlib.metadata import distribution

if __name__ == "__main__":
    distribution("lcm-harness").entry_points["lcm"].load()()
