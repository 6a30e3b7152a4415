"""Brand and item of a preference."""

from lcm.writing.deduplication.preference_slots import Preference, atomic_preference, preference, token

PREFERENCES = {
    "我喜欢麦当劳的板烧鸡腿堡": Preference("麦当劳", ("板烧鸡腿堡",)),
    "[用户]  用户很喜欢星巴克的拿铁、美式，因为好喝": Preference("星巴克", ("拿铁", "美式")),
    "I really love the latte from Starbucks": Preference("starbucks", ("latte",)),
    "We enjoy shoes and a hat & socks from H&M": Preference("h&m", ("shoes", "hat", "socks")),
    "我不喜欢麦当劳的薯条": None,
    "I hate burgers from McDonalds": None,
    "I like if from x": Preference("x", ("if",)),
    "I like tea when it rains from Lipton": Preference("lipton", ("tea",)),
    "I like when it rains from Lipton": Preference("lipton", ("whenitrains",)),
}


def test_a_preference_names_a_brand_and_items_and_one_of_a_single_item_is_atomic() -> None:
    assert {text: preference(text) for text in PREFERENCES} == PREFERENCES
    assert atomic_preference("I like tea from Lipton") == Preference("lipton", ("tea",))
    assert atomic_preference("I like tea and coffee from Lipton") is None


def test_a_token_has_no_quotes_articles_white_space_or_capitals() -> None:
    assert token(" “The  Blue Kettle”。") == "bluekettle"
