"""How languages write numbers, amounts of money and `&`, for the languages of which we know it."""

from dataclasses import dataclass

import regex


@dataclass(frozen=True, slots=True)
class Convention:
    """The marks of a language: before decimals, between thousands, and where the currency sign stands.

    `bare_decimal` tells whether digits with one decimal mark are a decimal number wherever they stand: 3.10
    in English may be a version or a section. `ampersand` is what `&` between two words means.
    """

    decimal: str
    thousands: str
    bare_decimal: bool
    currency_first: bool
    ampersand: str


CONVENTIONS = {
    "en": Convention(".", ",", bare_decimal=False, currency_first=True, ampersand="and"),
    "fr": Convention(",", " ", bare_decimal=True, currency_first=False, ampersand="et"),
}
_SPACES = "[ \u00a0\u2009\u202f]"
_QUANTITY = regex.compile(
    rf"{_SPACES}?(?:[%‰°€$£]|per{_SPACES}?cent\b|million|billion|trillion|[kmc]?m\b|kg\b)"
)


def rewritten(number: str, after: str, source: str | None, target: str | None) -> str | None:
    """Return a number or an amount of the source language as the target language writes it.

    `after` is the text that follows. None if it is written alike, or no convention tells how it is written.
    """
    here, there = CONVENTIONS.get(source or ""), CONVENTIONS.get(target or "")
    if here is None or there is None or here == there:
        return None
    apart = _SPACES if here.thousands == " " else regex.escape(here.thousands)
    amount = regex.fullmatch(
        rf"(?P<sign>\p{{Sc}}?){_SPACES}?(?P<whole>\d{{1,3}}(?P<apart>{apart}\d{{3}})+|\d+)"
        rf"(?:{regex.escape(here.decimal)}(?P<part>\d+))?"
        rf"(?:{_SPACES}?(?P<sign_after>\p{{Sc}}?)|(?P<degrees>{_SPACES}?°.*))",
        number,
    )
    if amount is None:
        return None
    sign, part = amount["sign"] or amount["sign_after"], amount["part"]
    is_quantity = here.bare_decimal or sign or amount["degrees"] or amount["apart"] or _QUANTITY.match(after)
    if part and not is_quantity:
        return None
    whole = amount["whole"]
    if amount["apart"]:
        digits = regex.sub(r"\D", "", whole)
        whole = regex.sub(r"(?<=\d)(?=(?:\d{3})+$)", there.thousands, digits)
    text = whole + (f"{there.decimal}{part}" if part else "")
    if sign:
        text = f"{sign}{text}" if there.currency_first else f"{text} {sign}"
    text += amount["degrees"] or ""
    return text if text != number else None
