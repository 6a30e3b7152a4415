"""A warm process that forks a child for each batch it is asked to run: a kill costs milliseconds.

Reads a line of JSON a batch from stdin; writes what the child told and how it ended, a line of JSON each.
"""

import json
import os
import sys
from pathlib import Path

import lcm.store.file
from lcm.store.connection import connect
from tests.faults.batch import work, written
from tests.faults.killing_connection import KillingConnection


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            os.close(ours)
            run(asked, theirs)
        os.close(theirs)
        with os.fdopen(ours) as told:
            said = told.read().splitlines()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps({"said": said, "status": status}), flush=True)


def run(asked: dict, channel: int) -> None:
    """In the child: a batch, killed at a statement of its connection."""

    def tell(text: str) -> None:
        os.write(channel, f"{text}\n".encode())

    made: list[KillingConnection] = []

    def connected(path: Path) -> KillingConnection:
        made.append(KillingConnection(connect(path), tell, asked["at"], after=asked["after"]))
        return made[-1]

    lcm.store.file.connect = connected
    code = 1
    try:
        work(Path(asked["into"]), written(Path(asked["files"])), asked["triggers"])
        tell("finished " + "".join(str(int(flag)) for flag in made[0].flags))
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
