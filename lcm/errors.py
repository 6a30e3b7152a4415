"""The exceptions that a caller catches. Bad arguments raise ValueError or TypeError instead."""

from lcm.redaction import redacted


class LcmError(Exception):
    """Whatever goes wrong for a reason that the user can mend; its text is one line, and shows no key."""

    def __init__(self, *told: object) -> None:
        super().__init__(*(redacted(one) if isinstance(one, str) else one for one in told))


class LimitError(LcmError):
    """There is more of something than is worked on; the text says how to raise the limit."""


class StoreError(LcmError):
    """The store refused a write or found itself inconsistent; nothing was changed."""


class MigrationError(StoreError):
    """The database is newer than this program, or a migration failed and was rolled back."""


class TranscriptError(LcmError):
    """A transcript cannot be read: unknown format, or a line that is not what its format says."""


class DatasetError(LcmError):
    """A dataset is missing, its files are not the ones whose digests are pinned, or nothing in it can be evaluated."""


class ModelError(LcmError):
    """A model cannot be found, opened, or is not the one that its digest names."""


class UnrecordedReplyError(ModelError):
    """A replay lacks a reply: nothing may stand in for it, or the replay would not repeat what was recorded."""


class UnansweredError(ModelError):
    """A model replied without words, or not in time: nothing is wrong with how it was asked."""


class AuthError(ModelError):
    """A model's server refuses the credentials: asking again is of no use until they change."""


class GrantError(LcmError):
    """A delegated reader asked for what its grant does not cover."""
