"""What a trace marks as found: what counts as found."""

from eval.experiment.workspace import WorkspaceEvaluator
from eval.ladder.losses import losses
from eval.ladder.places import FOUND
from eval.ladder.retrievals import retrievals
from eval.replay.bulk import Bulk
from lcm.retrieval.ranking.stages.limit import Limit
from lcm.retrieval.ranking.stages.near_duplicates import NearDuplicates
from tests.eval.ladder.test_losses import ASKED, dataset, ranked
from tests.support.workspaces import LINES


def test_a_document_stands_for_the_messages_of_its_near_duplicates() -> None:
    again = dataset(lines=(LINES[0], LINES[1], LINES[0], *LINES[3:]), judged=[2])
    evaluator = WorkspaceEvaluator(again, ranked(near=NearDuplicates(n=9), cut=Limit(2)), Bulk(), measures={})
    rows = losses(evaluator, lambda _: None)
    assert rows["place"].to_list() == [FOUND]
    (found,) = retrievals(evaluator, rows, [ASKED.query_id])
    before, *_, last = found.steps
    assert [one.messages for one in last.documents] == [("talk:2",), ()]
    assert sum(bool(one.messages) for one in before.documents) == 1  # its own document
