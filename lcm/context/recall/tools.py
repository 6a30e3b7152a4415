"""The tools as a host calls them: parameters by name in, text and details out.

Source: lossless-claw 0.6.3; names, defaults and caps are its own.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from jsonschema import Draft202012Validator

from lcm.clock import parse_instant
from lcm.context.recall.expansion import distilled_text
from lcm.context.recall.grants import Clock
from lcm.context.recall.grep import SORTS, grep_text
from lcm.context.recall.reader import DescribedFile, DescribedMessage, Reader, described_text
from lcm.context.recall.recall import DelegationError, Recall, route
from lcm.errors import LcmError
from lcm.store.conversations import active_conversation

_NO_SCOPE = "no conversation is known for this session: name conversationId, or set allConversations to true"
_VALIDATORS = {name: Draft202012Validator(tool["parameters"]) for name, tool in Recall.schemas().items()}


@dataclass(frozen=True, slots=True)
class ToolReply:
    """The reply of a recall tool to its host: text and details."""

    text: str
    details: Mapping[str, Any]
    """JSON."""

    @property
    def is_error(self) -> bool:
        return "error" in self.details


class _RefusedError(LcmError):
    """What was asked cannot be done; told as the tool's reply."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of one session: of the main one, or of a sub-agent whose reader is lent."""

    recall: Recall
    reader: Reader
    clock: Clock
    session_key: str | None = None
    """The id of the session's conversation."""

    def call(self, name: str, parameters: Mapping[str, Any], request_id: str = "") -> ToolReply:
        """Call a tool; what goes wrong is told in its reply, as `error` of the details.

        Raises:
            ValueError: if there is no such tool, or a parameter is not as its schema says, naming the path.
        """
        if name not in _VALIDATORS:
            raise ValueError(f"unknown tool {name!r}; choose one of: {', '.join(sorted(_VALIDATORS))}")
        problems = sorted(_VALIDATORS[name].iter_errors(dict(parameters)), key=lambda one: one.json_path)
        if problems:
            raise ValueError(f"{name}: {'; '.join(f'{one.json_path}: {one.message}' for one in problems)}")
        run: Callable[[Mapping[str, Any], str], ToolReply] = {
            "lcm_grep": self._grep,
            "lcm_describe": self._describe,
            "lcm_expand": self._expand,
            "lcm_expand_query": self._expand_query,
        }[name]
        try:
            return run(parameters, request_id)
        except DelegationError as refusal:
            return _failed(str(refusal), code=refusal.code, reason=refusal.reason)
        except LcmError as error:
            return _failed(str(error))

    def _grep(self, parameters: Mapping[str, Any], _: str) -> ToolReply:
        since, before = (_instant(parameters, name) for name in ("since", "before"))
        if since is not None and before is not None and since >= before:
            raise _RefusedError("`since` must be earlier than `before`.")
        mode = parameters.get("mode", "regex")
        limit = int(parameters.get("limit", self.recall.limit))
        orders = {sort: order for order, sort in SORTS.items()}
        order = orders.get(parameters.get("sort", ""), self.recall.order) if mode == "full_text" else "time"
        found = self.reader.grep(
            parameters["pattern"].strip(),
            mode=mode,
            scope=parameters.get("scope", "both"),
            conversation=self._conversation(parameters),
            since=since,
            before=before,
            limit=limit,
            order=order,
            now=self.clock(),
        )
        if found.is_refused and mode == "full_text":
            raise _RefusedError("; ".join(found.notes))
        text = grep_text(
            found,
            self.recall.max_result_chars,
            is_noted=self.recall.rules == "corrected",
            sort=SORTS[order] if self.recall.rules == "0.15" else "",
        )
        details = {
            "messageCount": len(found.messages),
            "summaryCount": len(found.summaries),
            "totalMatches": found.total,
        }
        return ToolReply(text, details)

    def _describe(self, parameters: Mapping[str, Any], _: str) -> ToolReply:
        cap = parameters.get("tokenCap")
        described = self.reader.describe(
            parameters["id"].strip(),
            conversation=self._conversation(parameters),
            token_cap=None if cap is None else int(cap),
            content=parameters.get("content", False) or parameters.get("expandFile", False),
        )
        text = described_text(described)
        if isinstance(described, DescribedMessage):
            said = described.said
            details = {"type": "message", "messageId": said.number, "recordedId": said.message_id}
            return ToolReply(text, {**details, "tokens": described.tokens})
        if isinstance(described, DescribedFile):
            file = described.stored.file
            return ToolReply(text, {"type": "file", "fileId": file.file_id, "byteSize": file.byte_size})
        summary = described.summary
        details = {
            "type": "summary",
            "summaryId": summary.summary_id,
            "kind": summary.kind,
            "depth": summary.depth,
            "parentIds": list(described.source_summary_ids),
            "childIds": list(described.derived_ids),
            "messageIds": list(described.messages),
            "tokenCap": described.budget_tokens,
        }
        return ToolReply(text, details)

    def _expand(self, parameters: Mapping[str, Any], _: str) -> ToolReply:
        if self.reader.lease is None:
            raise _RefusedError("lcm_expand is for delegated readers, which hold a grant; ask lcm_expand_query instead")
        conversation = self._conversation(parameters)
        query = parameters.get("query", "").strip()
        ids = parameters.get("summaryIds", [])
        if query:
            hits = self.reader.grep(query, mode="full_text", scope="summaries", conversation=conversation).summaries
            ids = [hit.summary_id for hit in hits]
        has_messages = parameters.get("includeMessages", False) and not query
        depth = int(parameters.get("maxDepth", self.recall.default_depth))
        cap = min(int(parameters.get("tokenCap", self.recall.max_expand_tokens)), self.recall.max_expand_tokens)
        plan = route(
            "query_probe" if query else "explicit_expand",
            len(ids),
            cap,
            query=query,
            depth=depth,
            has_messages=has_messages,
        )
        found = self.reader.expand(
            ids, depth=depth, token_cap=cap, has_messages=has_messages, conversation=conversation
        )
        details = {
            "expansionCount": len(found.roots),
            "citedIds": list(found.cited_ids),
            "totalTokens": found.tokens,
            "truncated": found.is_truncated,
            "policy": asdict(plan),
        }
        return ToolReply(distilled_text(found, self.recall.rules), details)

    def _expand_query(self, parameters: Mapping[str, Any], request_id: str) -> ToolReply:
        cap = int(parameters.get("tokenCap", self.recall.max_expand_tokens))
        answered = self.recall.expand_query(
            self.reader,
            parameters["prompt"],
            self.clock,
            summary_ids=parameters.get("summaryIds", ()),
            query=parameters.get("query", ""),
            conversation=None if self.reader.lease is not None else self._conversation(parameters),
            max_tokens=int(parameters.get("maxTokens", self.recall.max_answer_tokens)),
            token_cap=min(cap, self.recall.max_expand_tokens),
            origin=self.session_key or "main",
            request_id=request_id,
        )
        answer = answered.answer
        told = {
            "answer": answer.text,
            "citedIds": list(answer.cited_ids),
            "citedMessages": list(answer.cited_messages),
            "expandedSummaryCount": answer.expanded_summaries,
            "totalSourceTokens": answer.source_tokens,
            "truncated": answer.is_truncated,
        }
        conversation = answered.conversations[-1] if answered.conversations else None
        details = {**told, "sourceConversationId": conversation, "policy": asdict(answered.route)}
        return ToolReply(json.dumps(told, ensure_ascii=False, indent=2), details)

    def _conversation(self, parameters: Mapping[str, Any]) -> int | None:
        """The integer key of where to look; None = everywhere that the reader may."""
        if "conversationId" in parameters:
            return int(parameters["conversationId"])
        if parameters.get("allConversations") or self.reader.lease is not None:
            return None
        if self.session_key is not None:
            with self.reader.store.reading() as connection:
                found = active_conversation(connection, self.session_key)
            if found is not None:
                return found
        raise _RefusedError(_NO_SCOPE)


def _instant(parameters: Mapping[str, Any], name: str) -> datetime | None:
    if name not in parameters:
        return None
    try:
        return parse_instant(parameters[name])
    except ValueError as error:
        raise _RefusedError(f"{name} must be a valid ISO timestamp.") from error


def _failed(message: str, **details: str) -> ToolReply:
    reply = {"error": message, **details}
    return ToolReply(json.dumps(reply, ensure_ascii=False, indent=2), reply)
