import json
import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.alignment.statistical.evidence import relatedness
from regard.corpus.checks import RULES, check_pair
from regard.corpus.clean import clean
from regard.corpus.inspect import inspect
from regard.corpus.read import open_corpus
from regard.corpus.shift import MAX_OFFSET, OFFSETS, Shift, find_shifts, stretches
from regard.corpus.write import output_paths
from regard.errors import ConfigError, OutputError
from regard.sample import read_sample

PAIRS = [(pair.source, pair.target) for pair in read_sample(10_000)]


def write(tmp_path, pairs, name="a"):
    for side, language in enumerate(("fr", "en")):
        text = "".join(pair[side] + "\n" for pair in pairs)
        (tmp_path / f"{name}.{language}").write_bytes(text.encode("utf-8", "surrogateescape"))
    return open_corpus([tmp_path / f"{name}.fr", tmp_path / f"{name}.en"])


def lines_by_rule(report):
    return {problem.rule: list(problem.lines) for problem in report.problems}


@pytest.mark.parametrize(
    ("source", "target", "rules"),
    [
        ("Le chat dort.", "The cat sleeps.", []),
        ("", "The cat sleeps.", ["empty"]),
        (" \u00a0\u200b", "", ["empty"]),
        ("Le chat\udce9 dort.", "The cat sleeps.", ["utf8"]),
        ("Le chat\x00 dort.", "The cat sleeps.", ["control"]),
        ("Le chat dort.", "The cat\u2028sleeps.", ["control"]),
        ("Le chat\rdort.", "The cat sleeps.", ["control"]),
        ("The cat sleeps.", "The  cat sleeps. ", ["copy"]),
        ("Le garÃ§on dort.", "The boy sleeps.", ["mojibake"]),
        ("Lâ€™homme dort.", "The man sleeps.", ["mojibake"]),
        ("Le gar\ufffdon dort.", "The boy sleeps.", ["mojibake"]),
        ("ÇÑ±¹¾î", "Korean", ["mojibake"]),
        ("À côté, ça été déjà créé : œuvre", "Fine", []),
        ("<b>Oui</b> %s", "<b>Yes</b> %s", []),
        ("<b>Oui</b>", "Yes", ["markup"]),
        ("Bonjour {name}", "Hello {nom}", ["markup"]),
        ("En 1992", "In 1993", ["numbers"]),
        ("1 500 000 euros", "1,500,000 euros", []),
        ("3,5 %", "3.50 %", []),
        ("à 17 h 30", "at 5:30 pm", []),
        ("le 14/07/1992", "7/14/92", []),
        ("les années 1970", "the 70s", []),
        ("deux chats", "2 cats", []),
        ("٣ كتب", "3 books", []),
        ("9" * 5000, "8" * 5000, ["numbers"]),
        ("„MENÜ“ et “CAFÉ”, LIBERTÉ… Ü–", "Fine", []),
        ("%s을(를) 삭제했습니다.", "Deleted %s.", []),
        ("un\ndeux\ttrois", "one\ntwo", []),
        ("\ud800 half", "half a character", ["utf8"]),
        ("Paris", "Paris", []),
        ("KakaoTalk 12", "KakaoTalk 12", []),
        ("In 2012 118 people died.", "2012년에 118명이 죽었다.", []),
    ],
)
def test_a_pair_is_judged_by_hand(source, target, rules):
    assert sorted(check_pair(source, target)) == sorted(rules)


def test_every_problem_is_found_with_its_line_and_reason(tmp_path):
    pairs = list(PAIRS[:2000])
    spoilt = {
        "utf8": (100, ("Le gar\udce7on dort ici.", "The boy sleeps here.")),
        "control": (200, ("Le chat\x00 dort ici.", "The cat sleeps here.")),
        "empty": (300, ("", "The cat sleeps here.")),
        "copy": (400, ("The cat sleeps on the mat.", "The cat sleeps on the mat.")),
        "mojibake": (500, ("Le garÃ§on dort.", "The boy sleeps.")),
        "markup": (600, ("<i>Le chat</i> dort.", "The cat sleeps.")),
        "numbers": (700, ("Il a 25 ans.", "He is 52.")),
        "language": (
            800,
            ("Der Hund schläft heute in dem großen Garten.", "The dog sleeps in the garden today."),
        ),
        "length": (
            900,
            ("Oui.", "Yes, " + "and I would like to say more about this matter, " * 4 + "he said."),
        ),
        "duplicate": (1000, pairs[41]),
    }
    for line, pair in spoilt.values():
        pairs[line - 1] = pair
    report = inspect(write(tmp_path, pairs))
    found = lines_by_rule(report)
    for rule, (line, _) in spoilt.items():
        assert line in found[rule], rule
        if rule != "duplicate":
            assert len([other for other in found[rule] if other != line]) <= (rule == "language"), rule
    reasons = {problem.rule: dict(problem.examples) for problem in report.problems}
    assert reasons["utf8"][100] == "source has the byte 0xE7 at character 7"
    assert reasons["control"][200] == "source has NUL at character 8"
    assert reasons["numbers"][700] == "25 in the source, 52 in the target"
    assert reasons["language"][800] == "source looks like 'de'"
    assert reasons["duplicate"][1000] == "the same as 42"
    assert report.num_pairs == 2000 and sum(report.lengths) == 2000


def test_pairs_whose_words_do_not_belong_together_are_found_when_asked_for(tmp_path):
    pairs = PAIRS[:2000]
    mixed = range(50, 2000, 100)
    for line, other in zip(mixed, (*mixed[1:], mixed[0]), strict=True):
        pairs[line - 1] = (pairs[line - 1][0], PAIRS[other - 1][1])
    corpus = write(tmp_path, pairs)
    found = set(lines_by_rule(inspect(corpus, relatedness=relatedness))["mismatch"])
    assert found <= set(mixed) and len(found) >= 8  # half of the pairs are too short to be judged
    assert "mismatch" not in lines_by_rule(inspect(corpus))
    few = inspect(write(tmp_path, PAIRS[:100], "few"), relatedness=relatedness)
    assert any("fewer than 150" in note and "belong together" in note for note in few.notes)


@pytest.mark.parametrize(
    ("offset", "start", "length"), [(1, 3000, 50), (-1, 6543, 50), (2, 50, 120), (-3, 9800, 200)]
)
@pytest.mark.slow
def test_a_shifted_block_is_found_in_ten_thousand_lines(tmp_path, offset, start, length):
    end = start + length
    targets = [target for _, target in PAIRS]
    block = targets[start:end]
    # Source i of the block belongs to target i + offset.
    shifted = [block[(place - offset) % length] for place in range(length)]
    targets[start:end] = shifted
    report = inspect(
        write(tmp_path, [(source, target) for (source, _), target in zip(PAIRS, targets, strict=True)])
    )
    [found] = report.shifts
    assert found.offset == offset
    assert abs(found.first_line - (start + 1)) <= 8 and abs(found.last_line - end) <= 8


@pytest.mark.slow
def test_a_sound_corpus_has_no_shift(tmp_path):
    assert inspect(write(tmp_path, PAIRS)).shifts == ()


@pytest.mark.slow
def test_a_corpus_shifted_from_end_to_end_is_found(tmp_path):
    pairs = [(source, target) for (source, _), (_, target) in zip(PAIRS[1:], PAIRS, strict=False)]
    [found] = inspect(write(tmp_path, pairs)).shifts
    assert (found.offset, found.first_line) == (1, 1) and found.last_line > 9990


def test_a_line_lost_in_the_middle_shifts_all_that_follows(tmp_path):
    corpus = write(tmp_path, PAIRS[:4000])
    targets = [target for _, target in PAIRS[:4000]]
    del targets[1700]
    (tmp_path / "a.en").write_text("".join(target + "\n" for target in targets))
    [found] = inspect(corpus).shifts
    assert found.offset == -1 and abs(found.first_line - 1701) <= 3 and found.last_line >= 3997


@pytest.mark.slow
def test_sides_that_have_nothing_in_common_are_a_loud_problem(tmp_path):
    targets = [target for _, target in PAIRS[:2000]]
    random.Random(1).shuffle(targets)
    report = inspect(
        write(tmp_path, [(source, target) for (source, _), target in zip(PAIRS, targets, strict=False)])
    )
    assert report.unrelated and report.to_json()["unrelated"]


@given(st.lists(st.integers(1, 9), min_size=40, max_size=60))
def test_shifts_do_not_depend_on_how_the_corpus_is_cut(sizes):
    pairs = [(str(number), str(number)) for number in range(sum(sizes))]
    iterator = iter(pairs)
    chunks = [list(islice(iterator, size)) for size in sizes]
    judged = [
        (stretch.first + place, stretch.pairs[place])
        for stretch in stretches(chunks)
        for place in range(stretch.begin, stretch.end)
    ]
    assert judged == list(enumerate(pairs))
    for stretch in stretches(chunks):
        around = range(stretch.begin - MAX_OFFSET, stretch.end + MAX_OFFSET)
        for place in around:
            number = stretch.first + place
            if 0 <= number < len(pairs):
                assert stretch.pairs[place] == pairs[number]


def test_the_most_likely_offsets_by_hand():
    nearness = np.zeros((60, len(OFFSETS)), np.float32)
    nearness[:, OFFSETS.index(0)] = 0.5
    nearness[20:40] = 0
    nearness[20:40, OFFSETS.index(2)] = 0.5
    assert find_shifts([nearness[:7], nearness[7:]]) == [Shift(20, 40, 2)]
    nearness[23:40] = nearness[0]  # three lines are too few to be believed
    assert find_shifts([nearness]) == []


def test_unequal_files_are_reported_and_not_refused(tmp_path):
    corpus = write(tmp_path, PAIRS[:300])
    (tmp_path / "a.en").write_text("".join(target + "\n" for _, target in PAIRS[:290]))
    report = inspect(corpus)
    assert report.unequal == (300, 290) and report.num_pairs == 290


def test_overlap_with_a_test_set_is_found_on_either_side(tmp_path):
    test = write(tmp_path, [(PAIRS[5][0].upper(), "Nothing."), ("Rien du tout.", PAIRS[9][1])], "test")
    report = inspect(write(tmp_path, PAIRS[:200]), test)
    assert {6, 10} <= set(lines_by_rule(report)["overlap"])


def test_languages_that_no_name_tells_are_guessed(tmp_path):
    for side, name in enumerate(("a.txt", "b.txt")):
        (tmp_path / name).write_text("".join(pair[side] + "\n" for pair in PAIRS[:200]))
    report = inspect(open_corpus([tmp_path / "a.txt", tmp_path / "b.txt"]))
    assert (report.source_language, report.target_language) == ("fr", "en")


def test_a_language_nobody_knows_is_noted_and_not_checked(tmp_path):
    for side, name in enumerate(("a.x", "b.en")):
        (tmp_path / name).write_text("".join(pair[side] + "\n" for pair in PAIRS[:50]))
    report = inspect(open_corpus([tmp_path / "a.x", tmp_path / "b.en"], source_language="tlh"))
    assert any("tlh" in note for note in report.notes)
    assert any("fewer than 150 pairs" in note for note in report.notes)


def test_a_clean_copy_is_sound_and_every_removal_is_counted(tmp_path):
    pairs = [*PAIRS[:500], ("", "x"), PAIRS[3], ("<b>a", "b"), ("Le chat\x00 dort.", "The cat sleeps.")]
    corpus = write(tmp_path, pairs)
    report = inspect(corpus)
    cleaning = clean(corpus, report, tmp_path / "good")
    assert cleaning.num_kept + sum(cleaning.removed.values()) == len(pairs)
    assert cleaning.removed["empty"] == 1 and cleaning.removed["control"] == 1
    good = inspect(open_corpus([tmp_path / "good.fr", tmp_path / "good.en"]))
    assert good.num_pairs == cleaning.num_kept and not good.problems


@pytest.mark.parametrize("name", ["good.tsv", "good.jsonl.gz", "good.xz", "good.zst"])
def test_a_clean_copy_can_be_written_in_several_formats(tmp_path, name):
    corpus = write(tmp_path, PAIRS[:50])
    report = inspect(corpus)
    cleaning = clean(corpus, report, tmp_path / name, keep=list(RULES))
    assert cleaning.num_kept == 50 and cleaning.removed == {}
    if name.startswith(("good.tsv", "good.jsonl")):
        again = open_corpus([tmp_path / name], "fr", "en")
    else:
        again = open_corpus([tmp_path / f"good.{language}.{name[5:]}" for language in ("fr", "en")])
    assert [(pair.source, pair.target) for pair in again.pairs()] == PAIRS[:50]


def test_bytes_that_are_not_utf8_are_written_as_they_came_if_kept(tmp_path):
    corpus = write(tmp_path, [*PAIRS[:20], ("gar\udce7on", "boy")])
    clean(corpus, inspect(corpus), tmp_path / "good", keep=list(RULES))
    assert (tmp_path / "good.fr").read_bytes() == (tmp_path / "a.fr").read_bytes()


def test_line_breaks_inside_a_segment_do_not_break_lines(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"fr": "un\ndeux\ttrois", "en": "one\ntwo"}) + "\n")
    corpus = open_corpus([tmp_path / "a.jsonl"])
    clean(corpus, inspect(corpus), tmp_path / "good", keep=list(RULES))
    assert (tmp_path / "good.fr").read_text() == "un deux\ttrois\n"
    clean(corpus, inspect(corpus), tmp_path / "good.tsv", keep=list(RULES))
    assert (tmp_path / "good.tsv").read_text() == "un deux trois\tone two\n"


def test_cleaning_never_overwrites_a_file(tmp_path):
    corpus = write(tmp_path, PAIRS[:50])
    before = (tmp_path / "a.fr").read_bytes()
    with pytest.raises(OutputError, match="exists already"):
        clean(corpus, inspect(corpus), tmp_path / "a")
    assert (tmp_path / "a.fr").read_bytes() == before


@pytest.mark.parametrize("name", ["", ".", "folder", "good.tmx", "good.csv.gz"])
def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path, name):
    corpus = write(tmp_path, PAIRS[:5])
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match=r"is a folder|cannot be written as"):
        output_paths(tmp_path / name, corpus)
    with pytest.raises(OutputError, match="is a folder"):
        output_paths(Path(), corpus)


def test_lines_without_a_partner_are_counted_when_cleaning(tmp_path):
    corpus = write(tmp_path, PAIRS[:30])
    (tmp_path / "a.en").write_text("".join(target + "\n" for _, target in PAIRS[:28]))
    assert clean(corpus, inspect(corpus), tmp_path / "good").num_unpaired == 2


def test_swapped_files_are_noticed(tmp_path):
    for side, name in enumerate(("a.en", "a.fr")):
        (tmp_path / name).write_text("".join(pair[side] + "\n" for pair in PAIRS[:200]))
    report = inspect(open_corpus([tmp_path / "a.en", tmp_path / "a.fr"]))
    assert any("swapped" in note for note in report.notes)


def test_an_unknown_rule_to_keep_is_refused(tmp_path):
    corpus = write(tmp_path, PAIRS[:50])
    with pytest.raises(ConfigError, match="choose from"):
        clean(corpus, inspect(corpus), tmp_path / "good", keep=["lenght"])


def test_the_json_report_has_every_line(tmp_path):
    pairs = [*PAIRS[:100], *[("", "x")] * 40]
    report = json.loads(json.dumps(inspect(write(tmp_path, pairs)).to_json()))
    assert report["problems"]["empty"]["lines"] == list(range(101, 141))
    assert report["pairs"] == 140 and sum(report["lengths"].values()) == 140


def test_workers_find_what_one_process_finds(tmp_path):
    pairs = [*PAIRS[:3000], ("", "x"), PAIRS[7], ("<b>a", "b")]
    corpus = write(tmp_path, pairs)
    alone = inspect(corpus).to_json()
    assert inspect(corpus, num_workers=2).to_json() == alone
