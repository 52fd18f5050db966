"""How good a translation probably is, and whether its source is in the language that the model reads."""

import json

import pytest

import regard


@pytest.fixture(scope="module")
def translator():
    return regard.load("fr-en", engine="numpy")


def test_quality_tells_good_translations_from_bad_ones(translator):
    good, bad = translator.translate(["Je suis étudiant.", "Zblorg vrax quindle mopsarel fnordique."])
    assert 0 <= bad.quality < 0.5 < good.quality <= 1
    assert json.loads(json.dumps(good.to_json()))["quality"] == pytest.approx(good.quality, abs=1e-3)


def test_a_blank_text_has_nothing_wrong(translator):
    (blank,) = translator.translate([" "])
    assert blank.quality == 1 and blank.flags == ()


@pytest.mark.parametrize(
    ("text", "is_other"),
    [
        ("The cat sleeps on the table.", True),
        ("Die Katze schläft auf dem Tisch im Garten.", True),
        ("Le chat dort sur la table.", False),
        ("LE CHAT DORT SUR LA TABLE.", False),
        ("Monsieur le Président, la situation est grave.", False),
        ("No, thanks.", False),  # too short to tell
    ],
)
def test_a_source_in_another_language_is_flagged(translator, text, is_other):
    (found,) = translator.translate([text])
    assert ("language" in found.flags) == is_other


def test_without_the_guard_nothing_is_asked(translator):
    (found,) = translator.translate(["The cat sleeps on the table."], guard=False)
    assert "language" not in found.flags


def test_the_flag_is_the_same_in_a_batch(translator):
    texts = ["The cat sleeps on the table.", "Je suis étudiant.", "Oui.", "My father works in a big factory."]
    together = [one.flags for one in translator.translate(texts)]
    assert together == [translator.translate([text])[0].flags for text in texts]
    assert [("language" in flags) for flags in together] == [True, False, False, True]
