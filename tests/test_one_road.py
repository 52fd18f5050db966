"""`regard show` shows the translation that `regard translate` gives, with the guard on, for every bundled model."""

import functools
import json
import subprocess
import sys

import pytest

from regard.loaded import Loaded
from regard.starter import bundled
from regard.trace.make import Tracer
from regard.translate.translator import IN_THIS_THREAD, Translator

FRENCH = {
    "plain": "Il fait beau aujourd'hui.",
    "capitals": "IL FAIT BEAU AUJOURD'HUI.",
    "capitals with a placeholder": "SUPPRIMER {0} FICHIERS ?",
    "numbers": "C'est l'été 2024 : 1 234,56 € !",
    "names": "Le directeur de la commission Charbonneau habite à Beloeil.",
    "decimals": "Le taux est de 3,5 % sur 12 000 personnes, selon « les experts ».",
    "address": "Voir https://example.org/a?b=1 avant le 12/03/2024.",
    "placeholders": "Supprimer {0} lignes de %s ?",
    "emoji": "Merci 😀 beaucoup",
    "typed": "  “bonjour”   l’ami ",
    "one word": "Bonjour",
    "foreign": "чат спит",
    "long sentence": ", et ".join(f"le chat numéro {n} dort dans la maison du voisin" for n in range(14)),
    "long": " ".join(f"Le chat numéro {n} dort dans la maison, et les enfants jouent." for n in range(12)),
}
ENGLISH = {
    "plain": "The weather is fine today.",
    "capitals": "THE CAT SLEEPS ON THE TABLE.",
    "placeholders": "Delete {0} rows of %s?",
    "long": " ".join(f"Cat number {n} sleeps, and the children play." for n in range(14)),
}
KOREAN = {
    "plain": "나는 학생입니다.",
    "address": "2024년에 https://example.org/a 를 보세요.",
    "long": " ".join(f"고양이 {n} 마리가 집에서 잔다." for n in range(24)),
}
TEXTS = {"fr": FRENCH, "en": ENGLISH, "ko": KOREAN}
CASES = [
    pytest.param(model, text, id=f"{model}: {name}")
    for model in bundled()
    for name, text in TEXTS[model[:2]].items()
]


@functools.cache
def loaded(name):
    return Loaded.open(name)


def translate(name, text, **how):
    (one,) = Translator(loaded(name), IN_THIS_THREAD).translate([text], **how)
    return one


@pytest.mark.parametrize(("name", "text"), CASES)
@pytest.mark.parametrize("beam_size", [1, 5])
def test_show_has_the_translation_of_translate(name, text, beam_size):
    one = translate(name, text, beam_size=beam_size)
    traces = Tracer(loaded(name)).traces(text, beam_size=beam_size)
    searched = [part for part in one.parts if part.searched is not None]
    assert len(traces) == len(searched)
    place = 0
    for trace, part in zip(traces, searched, strict=True):
        assert (trace.whole.source, trace.whole.text, trace.whole.flags) == (text, one.text, list(one.flags))
        assert trace.whole.num_parts == len(traces)
        assert trace.target.text == one.text[slice(*part.span)] and trace.target.text
        place = one.text.index(trace.target.text, place) + len(trace.target.text)
        assert tuple(piece.piece for piece in trace.target.pieces) == part.pieces
        assert tuple(piece.piece for piece in trace.source.pieces) == part.source_pieces
        assert trace.source.text in text
    if len(one.parts) == 1:
        assert (traces[0].source.text, traces[0].target.text) == (text, one.text)
        assert traces[0].target.flags == list(one.flags)


def test_the_cases_meet_every_way_a_text_can_take():
    flags = {flag for case in CASES for flag in translate(*case.values).flags}
    assert {"capitals", "split", "foreign"} <= flags and flags & {"kept", "around"}


@pytest.mark.parametrize("name", ["fr-en", "fr-en-rnn"])
def test_a_prefix_is_shown_as_it_is_translated(name):
    one = Translator(loaded(name), IN_THIS_THREAD).translate([FRENCH["plain"]], prefixes=["It is"])[0]
    trace = Tracer(loaded(name)).trace(FRENCH["plain"], prefix="It is")
    assert trace.target.text == one.text and one.text.startswith("It is")
    assert trace.target.pieces[0].forced and not trace.target.pieces[-1].forced


def test_the_plain_search_is_there_on_request():
    text = FRENCH["capitals"]
    raw = Tracer(loaded("fr-en")).trace(text, raw=True)
    assert raw.target.text == translate("fr-en", text, guard=False).text != translate("fr-en", text).text
    assert raw.whole is None and raw.request.part is None


def regard(*words):
    return subprocess.run(
        [sys.executable, "-m", "regard", *words], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("text", [FRENCH["capitals"], FRENCH["placeholders"]])
def test_the_commands_print_the_same_translation(text):
    said = regard("translate", text).stdout.rstrip("\n")
    shown = regard("show", text, "--width", "200").stdout.splitlines()
    assert f"→ {said}" in shown


def test_each_part_of_a_long_text_can_be_stepped_through(tmp_path):
    text = FRENCH["long"]
    num_parts = sum(part.searched is not None for part in translate("fr-en", text).parts)
    assert num_parts > 1
    whole = regard("show", text, "--width", "200").stdout
    assert all(f"part {number} of {num_parts}:" in whole for number in range(1, num_parts + 1))
    step = regard("show", text, "--part", "2", "--step", "1")
    assert step.returncode == 0 and f"part 2 of {num_parts}:" in step.stdout
    for words, message in (
        (("--step", "1"), f"{num_parts} parts; choose one with --part"),
        (("--json", str(tmp_path / "x.json")), "choose one with --part"),
        (("--part", "99"), "there is no part 99"),
    ):
        wrong = regard("show", text, *words)
        assert wrong.returncode == 2 and message in wrong.stderr and wrong.stderr.count("\n") == 1
    path = tmp_path / "two.json"
    assert regard("show", text, "--part", "2", "--json", str(path)).returncode == 0
    kept = json.loads(path.read_text())
    assert kept["request"]["part"] == 1 and kept["whole"]["num_parts"] == num_parts
    again = regard("show", str(path), "--width", "200").stdout
    assert f"part 2 of {num_parts}:" in again
