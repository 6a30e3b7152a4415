"""When a document stands, and when it has run out."""

from lcm.plugins.lancedb_pro.validity import is_active, is_expired


def test_a_document_stands_from_its_beginning_until_just_before_its_end() -> None:
    assert [is_active(10, 20, at) for at in (9, 10, 19, 20)] == [False, True, True, False]


def test_without_an_end_a_document_stands_forever() -> None:
    assert is_active(10, None, 10**15)
    assert is_active(10, 0, 10**15)


def test_a_document_expires_at_its_last_instant() -> None:
    assert [is_expired(20, at) for at in (19, 20, 21)] == [False, True, True]
    assert not is_expired(None, 10**15)
    assert is_expired(0, 1)
