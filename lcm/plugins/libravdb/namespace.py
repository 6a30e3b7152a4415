"""Whose durable memory it is."""


def durable_namespace(
    user_id: str | None, session_key: str | None, agent_id: str | None, fallback: str | None = None
) -> str:
    """The first that is not blank: the user's id, the session's key, the agent's id, the fallback; else "default".

    Source: libravdb memory 1.4.4.
    """
    named = ((user_id, ""), (session_key, "session-key:"), (agent_id, "agent-id:"), (fallback, ""))
    for value, prefix in named:
        if value is not None and value.strip():
            return prefix + value.strip()
    return "default"
