"""Translation memories: exact matches are taken as they are, similar ones are shown beside the translation."""

import random
import re
from dataclasses import replace

import jsonschema
import pytest

import regard
from regard.cli import run
from regard.errors import ConfigError, CorpusError
from regard.memory import TranslationMemory
from regard.translate.request import Request
from regard.translate.result import schema

UNITS = [
    ("The cat sleeps.", "Le chat fait dodo\u00a0: «\u00a0oui\u00a0»."),
    ("Click the Save button now.", "Cliquez maintenant sur le bouton Enregistrer."),
]
TMX = "<tmx version='1.4'><header srclang='fr'/><body>{}</body></tmx>".format(
    "".join(
        f"<tu><tuv xml:lang='fr'><seg>{fr}</seg></tuv><tuv xml:lang='en'><seg>{en}</seg></tuv></tu>"
        for en, fr in UNITS
    )
)


@pytest.fixture(scope="module")
def translator():
    return regard.load("en-fr")


def similarity(one, other):
    """The obvious way: a table of edit distances of words."""
    a, b = (re.findall(r"\w+|[^\w\s]", text) for text in (one, other))
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return 1 - row[-1] / max(len(a), len(b))


def test_the_nearest_unit_is_that_of_a_search_through_all():
    rng = random.Random(1)

    def text():
        return " ".join(rng.choices(["a", "b", "c", "the", "the", "of", ",", "cat"], k=rng.randrange(1, 14)))

    for least in (0.3, 0.75):
        memory = TranslationMemory.of([(text(), "x") for _ in range(150)], least)
        for source in (text() for _ in range(100)):
            best = max(similarity(source, key) for key in memory._keys)
            found = memory.nearest(source)
            assert (0.0 if found is None else found.score) == pytest.approx(best if best >= least else 0.0)


def test_case_and_signs_count_and_spaces_and_curly_quotes_do_not():
    memory = TranslationMemory.of([("It’s  here.", "old"), ("It's here.", "new"), ("", "x"), ("y", " ")])
    assert len(memory) == 1 and memory.exact(" It's\there. ").target == "new"
    assert memory.exact("it's here.") is None and memory.exact("It's here") is None
    assert memory.nearest("It's here .").score == 0.99  # the same words, and not the same text
    assert TranslationMemory.of([("나는 학생이다", "x")]).nearest("나는 학생이다").score == 1
    assert TranslationMemory.of([]).nearest("a") is None


def test_exact_matches_are_taken_as_they_are_and_aligned(translator):
    memory = TranslationMemory.of(UNITS)
    asked = [
        Request("The <b>cat</b>  sleeps.", memory=memory, markup="xml"),
        Request("I sleep. The cat sleeps.", memory=memory),
        Request("The cat sleeps.", memory=memory, prefix="La"),
        Request("Click the Open button now.", memory=memory),
        Request("Click the Open button now."),
    ]
    tagged, two, begun, near, plain = translator.translate(asked)
    assert tagged.text == UNITS[0][1] and tagged.marked == UNITS[0][1].replace("chat", "<b>chat</b>")
    assert tagged.flags == ("memory",) and tagged.links
    assert two.text.endswith(f" {UNITS[0][1]}") and two.text.startswith("Je ")
    assert [(one.score, two.source[slice(*one.span)]) for one in two.memory] == [(1, "The cat sleeps.")]
    assert begun.text.startswith("La") and "memory" not in begun.flags
    assert near.text == plain.text and near.flags == (*plain.flags, "fuzzy") and not plain.memory
    assert (near.memory[0].target, near.memory[0].score) == (UNITS[1][1], pytest.approx(5 / 6))
    for one in (tagged, two, near, plain):
        jsonschema.validate(one.to_json(), schema())


def test_a_paragraph_that_the_memory_has_whole_is_one_match(translator):
    memory = TranslationMemory.of([("The cat sleeps. It rains.", "Tout va bien. Oui."), *UNITS])
    (same,) = translator.translate(["The cat sleeps. It rains."], memory=memory)
    (near,) = translator.translate(["The cat sleeps. It snows."], memory=memory)
    assert same.text == "Tout va bien. Oui." and len(same.parts) == 1
    assert near.text.startswith(UNITS[0][1])
    assert [one.score for one in near.memory] == [pytest.approx(6 / 7), 1]


def test_a_translation_that_the_model_cannot_read_is_taken_all_the_same(translator):
    class Short:  # the searcher of a model with few positions
        def __getattr__(self, name):
            return 3 if name == "max_tokens" else getattr(translator.model.searcher, name)

    short = type(translator)(replace(translator.model, searcher=Short()))
    (one,) = short.translate(["The cat sleeps."], memory=TranslationMemory.of(UNITS))
    assert one.text == UNITS[0][1] and one.flags == ("memory",)


def test_the_command_reads_a_memory_in_the_direction_of_the_model(tmp_path, capfd):
    memory, document = tmp_path / "my.tmx", tmp_path / "a.md"
    memory.write_text(TMX, "utf-8")
    document.write_text("# The cat sleeps.\n\nClick the Open button now.\n", "utf-8")
    assert run(["translate", "en-fr", "The cat sleeps.", "--memory", str(memory)]) == 0
    out, err = capfd.readouterr()
    assert out == UNITS[0][1] + "\n" and "1 of 1 were taken" in err
    how = ("--memory", str(memory), "--fuzzy", "0.8", "--out", str(tmp_path / "b.md"))
    assert run(["translate", "en-fr", str(document), *how]) == 0
    assert (tmp_path / "b.md").read_text("utf-8").startswith(f"# {UNITS[0][1]}\n")
    assert "line 3: 83% like 'Click the Save button now.'" in capfd.readouterr().err


@pytest.mark.parametrize("least", [0, 1.5, float("nan")])
def test_mistakes_are_one_line(tmp_path, least, translator, capfd):
    with pytest.raises(ConfigError, match="least score"):
        TranslationMemory.of(UNITS, least)
    plain = tmp_path / "my.txt"
    plain.write_text("a\n")
    with pytest.raises(CorpusError, match="two files"):
        translator.translate(["a"], memory=plain)
    assert run(["translate", "--fuzzy", "0.5", "il pleut"]) == 2
    assert "name it with --memory" in capfd.readouterr().err
