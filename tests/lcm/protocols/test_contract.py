"""What a component says of itself is a contract, or nothing."""

import pytest

from lcm.protocols.contract import NOTHING_SAID, Contract, contract_of


class Said:
    contract = Contract(reads=("created_at",))


class Depends:
    @property
    def contract(self) -> Contract:
        return Contract(is_off=True)


class NoProperty:
    def contract(self) -> Contract:
        return Contract(is_off=True)


def test_a_contract_is_of_the_class_or_of_what_is_built() -> None:
    assert contract_of(Said()).reads == contract_of(Said).reads == ("created_at",)
    assert contract_of(Depends()).is_off
    assert contract_of(Depends) == contract_of(object()) == NOTHING_SAID


def test_a_contract_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match="contract of NoProperty must be a Contract"):
        contract_of(NoProperty())
