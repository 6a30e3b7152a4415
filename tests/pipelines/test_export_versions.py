"""`lcm export ... for=VERSION`: the file that a version takes, what it refuses by name, and the way back."""

import json

from pipelines.cli import BAD_INPUT
from tests.pipelines.conftest import Lcm

TURNED = ("system=libravdb", "fusion.theta1=0.3", "admission.technical_norm=2", "assembly.shares.soft_fraction=0.2")


def test_a_version_is_written_what_it_takes_and_what_it_refuses_is_named(lcm: Lcm) -> None:
    done = lcm("export", *TURNED, "target=yaml,libravdb", "for=1.10", "to=new", "tracking=none")
    assert done.code == 0, done.stderr
    document = json.loads((done.place / "new/libravdb.json").read_text())
    assert (document["section7Theta1"], document["authoredSoftBudgetFraction"]) == (0.3, 0.2)
    assert not {"gatingWeights", "gatingTechNorm"} & document.keys()
    assert "refuses, and the file leaves out: gatingWeights.w1c, gatingWeights.w2c" in done.stdout
    assert "a part of the manifest is known; all else is taken to be as in 1.4.4" in done.stdout
    told = json.loads((done.place / "new/provenance.json").read_text())["targets"]["libravdb"]
    lost = {entry["key"]: (entry["value"], entry["reason"]) for entry in told["not_expressible"]}
    assert lost["admission.technical_norm"] == (2, "the manifest of 1.10.14-beta.1 refuses gatingTechNorm")
    assert "fusion.theta1" not in lost
    assert told["version"] == "1.10.14-beta.1"
    assert "GATING_TECH_NORM" not in (done.place / "new/libravdb.env").read_text()
    back = lcm("import", "new/libravdb.json")
    assert "fusion.theta1=0.3" in back.stdout
    assert "assembly.shares.soft_fraction=0.2" in back.stdout
    assert lcm("import", "new/libravdb.json", "plugin=libravdb@1.4").code == BAD_INPUT

    done = lcm("export", *TURNED, "target=libravdb", "to=old", "tracking=none")
    assert "fusion.theta1" in done.stdout
    assert json.loads((done.place / "old/libravdb.json").read_text())["gatingTechNorm"] == 2
