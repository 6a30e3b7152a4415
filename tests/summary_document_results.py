"""What the choices of summary documents make of a summary, and end in its place."""

from omegaconf import DictConfig

from lcm.protocols import SummaryDocuments
from lcm.records import Summary
from pipelines import configuration
from tests.lcm.admission.tables import messages
from tests.workspaces import minute, workspace
