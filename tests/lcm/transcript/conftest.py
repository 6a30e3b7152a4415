"""Which of these tests there are."""

import os

collect_ignore = [] if "LCM_DATASETS_DIR" in os.environ else ["test_recorded_sessions.py"]
