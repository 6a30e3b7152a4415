"""Documents of messages: what was said in a conversation since documents were last made of it."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from lcm.errors import StoreError
from lcm.memory.dated_messages import DatedMessages
from lcm.memory.ingest_plan import plan_ingest, write_plan
from lcm.memory.live_documents import DocumentChange, LiveDocuments
from lcm.memory.scopes.scopes import parse_agent_id
from lcm.memory.system import System
from lcm.records.conversation import Message
from lcm.records.document import Candidate
from lcm.writing.admission.intake import Intake

_log = logging.getLogger(__name__)


class MessageDocuments:
    """Makes documents of the messages of a workspace, as a system extracts, admits and merges them."""

    def __init__(self, system: System, live: LiveDocuments) -> None:
        self._system, self._live = system, live
        self._messages = DatedMessages(live)

    def make(self, conversation_id: str, extracted: int) -> DocumentChange:
        """Write documents of the messages after the first `extracted`, inside the caller's transaction.

        They are written to the scope of the agent that the conversation id names, and compared with what it may read.
        """
        system, live = self._system, self._live
        messages, unset = self._messages.read(conversation_id, extracted)
        new = {message.message_id for message in messages[extracted:]}
        if late := [message_id for message_id in unset if message_id in new]:
            _log.warning(
                "%d messages from %s on are dated by no set clock, so by what stands before", len(late), late[0]
            )
            live.incidents["messages dated by no set clock"] += len(late)
        agent = parse_agent_id(conversation_id)
        scope = system.scopes.conversation_scope(conversation_id)
        candidates = self._candidates(messages, extracted, scope, agent)
        intake = Intake(system.admission, system.deduplication)
        # Who has no name is compared with what is written beside it, not with everybody's secrets.
        readable = (scope,) if agent is None else system.scopes.readable(agent)
        plan = plan_ingest(
            conversation_id,
            messages,
            candidates,
            intake,
            live.indexes,
            lambda: live.comparison_set(readable),
            live.standing,
            incidents=live.incidents,
        )
        write_plan(plan, conversation_id, live.store, system.token_estimator)
        live.store.set_extracted(conversation_id, len(messages))
        return DocumentChange(plan.windows, [document_id for document_id, _ in (*plan.ends, *plan.notes)])

    def _candidates(
        self, messages: Sequence[Message], extracted: int, scope: str, agent: str | None
    ) -> list[Candidate]:
        """What extraction makes of the messages after `extracted`, to be written to `scope` where it names none.

        Raises:
            StoreError: if it names one that the agent cannot reach.
        """
        candidates = self._system.extraction.extract(messages, extracted, incidents=self._live.incidents)
        for named in {candidate.scope for candidate in candidates} - {None, scope}:
            if named is not None and not self._system.scopes.is_accessible(named, agent):
                raise StoreError(
                    f"extraction writes to the scope {named!r}, which {agent or 'a conversation without an agent'} "
                    "cannot reach: name it in scopes.agent_access, or in scopes.definitions"
                )
        return [candidate if candidate.scope else replace(candidate, scope=scope) for candidate in candidates]
