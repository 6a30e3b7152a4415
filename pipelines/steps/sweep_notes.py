"""What is known of a sweep before its first point runs: which points will be equal, and what a plugin can take."""

from collections.abc import Iterator, Mapping

from lcm.plugins.settings.tables import Table
from pipelines.config.contracts import alike_notes
from pipelines.steps.plugin_reach import keys_of_memory, reach_of_swept
from pipelines.steps.point import READ
from pipelines.steps.points_apart import BuiltPoint


def notes_before(points: Mapping[str, BuiltPoint], plugin: Table | None) -> Iterator[str]:
    """A line for each.

    Args:
        points: by their labels.
        plugin: of which is asked what it can take.
    """
    some = _with_every_value(points)
    yield from (f"note: {note}" for note in alike_notes({label: built.config for label, built in some.items()}, READ))
    if plugin is not None:
        plain = [built.plain for built in some.values()]
        keys = keys_of_memory([one for label in some for one in label.split(" ")], plain[0])
        yield reach_of_swept(plugin, plain, keys)


def _with_every_value(points: Mapping[str, BuiltPoint]) -> dict[str, BuiltPoint]:
    """So many points of a grid as have each of its values once: what a setting leaves without effect shows in them."""
    seen: set[str] = set()
    found = {}
    for label, built in points.items():
        if not seen.issuperset(values := label.split(" ")):
            seen.update(values)
            found[label] = built
    return found
