"""`regard evaluate` as a user meets it: tables, files, folders, and mistakes in one line."""

import gzip
import json
from pathlib import Path

import pytest

import regard
from regard.cli import run

GOLDEN = Path(__file__).parent / "golden" / "model-1.regard"
SOURCES = ["il pleut .", "le chat dort .", "un chien mange .", "il mange ."]
REFERENCES = ["it rains .", "the cat sleeps .", "a dog eats .", "he eats ."]


@pytest.fixture
def call(capfd, tmp_path, monkeypatch):
    """Runs `regard evaluate` beside a test set; its exit code, what it says and its messages."""
    monkeypatch.chdir(tmp_path)
    write("test.fr", SOURCES)
    write("test.en", REFERENCES)
    write("theirs.en", ["it rains .", "a cat sleeps .", "a dog eats .", ""])

    def call(*arguments):
        code = run(["evaluate", *map(str, arguments)])
        told = capfd.readouterr()
        return code, told.out, told.err

    return call


def write(name, lines):
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def everything():
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def test_a_model_is_scored_with_signatures(call):
    code, out, _ = call(GOLDEN, "test.fr", "test.en", "--beam", "1")
    assert code == 0
    for words in (
        "BLEU",
        "chrF2",
        "TER",
        "model-1",
        "|tok:13a|",
        "|bs:1000|",
        "cased, detokenised",
        "perplexity",
    ):
        assert words in out
    assert "Differences" not in out


def test_other_systems_are_compared_with_the_first(call):
    code, out, _ = call("test.fr", "test.en", "--given", "test.en=human", "--given", "theirs.en")
    assert code == 0
    assert "Differences from human" in out and "theirs.en" in out and "perplexity" not in out


def test_a_report_compares_any_two_systems(call):
    given = [f"--given={path}" for path in ("test.en=human", "theirs.en", "theirs.en=again")]
    code, out, _ = call("test.fr", "test.en", *given, "--report", "report")
    assert code == 0 and "Between the others, chance may explain every difference." in out
    data = json.loads(Path("report/report.json").read_text(encoding="utf-8"))
    pairs = [(one["first"], one["system"]) for one in data["differences"]]
    assert pairs[::3] == [("human", "theirs.en"), ("human", "again"), ("theirs.en", "again")]
    assert all(one["p_corrected"] >= one["p_randomisation"] for one in data["differences"])
    for name in ("report.md", "report.html"):
        assert "again from theirs.en" in Path("report", name).read_text(encoding="utf-8").replace("\\", "")


def test_models_of_one_name_and_given_files_stand_in_one_table(call):
    Path("a").mkdir()
    Path("a/model-1.regard").write_bytes(GOLDEN.read_bytes())
    code, out, _ = call(
        GOLDEN,
        "a/model-1.regard",
        "test.fr",
        "test.en",
        "--beam",
        "1",
        "--json",
        "-",
        "--given",
        "theirs.en=y",
    )
    found = json.loads(out)
    assert code == 0
    assert [one["name"] for one in found["systems"]] == [str(GOLDEN), "a/model-1.regard", "y"]


def test_json_is_all_that_is_printed_when_it_goes_to_standard_output(call):
    code, out, _ = call("test.fr", "test.en", "--given", "theirs.en", "--json", "-", "--lower", "--tokenized")
    found = json.loads(out)
    assert code == 0 and found["format"] == "regard-evaluation/1"
    assert found["compared"] == "lower-cased, tokenised"
    assert "|case:lc|" in found["signatures"]["bleu"] and "|tok:none|" in found["signatures"]["bleu"]
    assert [one["translations"][0]["text"] for one in found["sentences"]][1] == "a cat sleeps ."


def test_words_are_counted_in_the_training_data_if_given(call):
    Path("train.en.gz").write_bytes(gzip.compress(b"it rains .\n" * 200))
    code, out, _ = call(
        "test.fr", "test.en", "--given", "theirs.en", "--train", "train.en.gz", "--json", "scores.json"
    )
    assert code == 0 and "counted in the training data" in out and "wrote scores.json" in out
    rows = json.loads(Path("scores.json").read_text())["systems"][0]["by_frequency"]
    assert [(row["least"], row["num_reference_words"]) for row in rows] == [(0, 8), (100, 6)]


def test_a_test_set_may_be_one_file(call):
    write(
        "test.tsv", [f"{source}\t{reference}" for source, reference in zip(SOURCES, REFERENCES, strict=True)]
    )
    code, out, _ = call(GOLDEN, "test.tsv", "--beam", "1", "--json", "-")
    assert code == 0 and json.loads(out)["num_sentences"] == 4


def test_one_file_is_read_in_the_direction_of_the_model(call):
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{b}</seg></tuv><tuv xml:lang="fr"><seg>{a}</seg></tuv></tu>'
        for a, b in zip(SOURCES, REFERENCES, strict=True)
    )
    header = '<header srclang="en" segtype="sentence" adminlang="en" datatype="plaintext"/>'
    write("test.tmx", [f'<tmx version="1.4">{header}<body>{units}</body></tmx>'])
    code, out, _ = call(GOLDEN, "test.tmx", "--beam", "1", "--json", "-")
    assert code == 0 and json.loads(out)["sentences"][0]["source"] == SOURCES[0]


def test_search_options_reach_the_search(call):
    code, out, _ = call(
        GOLDEN, "test.fr", "test.en", "--set", "beam_size=2", "--set", "length_penalty=0.3", "--json", "-"
    )
    assert code == 0 and json.loads(out)["search"] == {"beam_size": 2, "length_penalty": 0.3}


def test_bare_models_try_nothing_again(call):
    plain = [one.text for one in regard.load(GOLDEN).translate(SOURCES, guard=False)]
    code, out, _ = call(GOLDEN, "test.fr", "test.en", "--no-guard", "--json", "-")
    found = json.loads(out)
    assert code == 0 and found["guard"] is False
    assert [one["translations"][0]["text"] for one in found["sentences"]] == plain
    _, out, _ = call(GOLDEN, "test.fr", "test.en", "--no-guard")
    assert "Models bare" in out


def test_a_report_is_a_folder_of_three_files(call):
    code, out, _ = call(
        GOLDEN, "test.fr", "test.en", "--given", "theirs.en", "--beam", "1", "--report", "report"
    )
    assert code == 0 and "wrote report/report.html" in out
    assert sorted(path.name for path in Path("report").iterdir()) == [
        "report.html",
        "report.json",
        "report.md",
    ]
    assert "<svg" in Path("report/report.html").read_text(encoding="utf-8")
    assert "model-1" in Path("report/report.md").read_text(encoding="utf-8")


def test_an_earlier_report_is_replaced_only_with_force(call):
    asked = ("test.fr", "test.en", "--given", "theirs.en", "--report", "report")
    assert call(*asked)[0] == 0
    before = everything()
    code, out, err = call(*asked)
    assert (code, out) == (2, "") and err.count("\n") == 1 and "--force" in err
    assert everything() == before
    assert call(*asked, "--force", "--lower")[0] == 0
    assert "lower-cased" in Path("report/report.md").read_text(encoding="utf-8").lower()


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_folder_of_somebody_else_is_never_replaced(call, force):
    Path("report").mkdir()
    Path("report/report.json").write_text('{"format": "something else"}')
    before = everything()
    code, _, err = call("test.fr", "test.en", "--given", "theirs.en", "--report", "report", *force)
    assert code == 2 and "not a report of regard" in err and everything() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.regard", "test.fr", "test.en"], "nowhere.regard"),
        (["test.en", "test.fr", "test.en"], "test.en: is not a regard model"),
        ([GOLDEN, "test.en", "test.fr"], "translates fr to en and the test set is en to fr"),
        ([GOLDEN], "name the test set"),
        ([GOLDEN, "test.fr"], "a single file must end in"),
        ([GOLDEN, "nowhere.fr", "test.en"], "nowhere.fr: no such file"),
        ([GOLDEN, "test.fr", "short.en"], "4 lines and short.en has 3"),
        ([GOLDEN, "test.fr", "blank.en"], "blank.en:2: the reference is blank"),
        ([GOLDEN, "blank.fr", "test.en"], "blank.fr:2: the source is blank"),
        ([GOLDEN, "test.fr", "latin.en"], "latin.en:3: is not UTF-8"),
        (["test.fr", "test.en", "--given", "short.en"], "short.en has 3 lines and the test set 4"),
        (["test.fr", "test.en", "--given", "latin.en"], "latin.en:3: is not UTF-8"),
        (["test.fr", "test.en", "--given", "nowhere.en=x"], "nowhere.en: no such file"),
        (["test.fr", "test.en", "--given", "theirs.en="], "write FILE or FILE=NAME"),
        (["test.fr", "test.en", "--given", "theirs.en", "--given", "theirs.en"], "two systems are called"),
        ([GOLDEN, "test.fr", "test.en", "--given", "theirs.en=model-1"], "two systems are called"),
        ([GOLDEN, "test.fr", "test.en", "--train", "nowhere.en"], "nowhere.en: no such file"),
        ([GOLDEN, "test.fr", "test.en", "--train", "empty.en"], "empty.en: has no words"),
        ([GOLDEN, "test.fr", "test.en", "--beam", "0"], "beam_size"),
        ([GOLDEN, "test.fr", "test.en", "--set", "beam_sise=2"], "beam_size"),
        ([GOLDEN, "test.fr", "test.en", "--force"], "--report"),
        ([GOLDEN, "test.fr", "test.en", "--json", "folder"], "is a folder"),
        ([GOLDEN, "test.fr", "test.en", "--json", "test.en"], "is read by this command"),
        ([GOLDEN, "test.fr", "test.en", "--report", "test.en"], "not a report of regard"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(call, arguments, message):
    write("short.en", REFERENCES[:3])
    write("blank.en", [REFERENCES[0], " ", *REFERENCES[2:]])
    write("blank.fr", [SOURCES[0], "", *SOURCES[2:]])
    write("empty.en", [""])
    Path("latin.en").write_bytes("a\nb\ncaf\xe9\nd\n".encode("latin-1"))
    Path("folder").mkdir()
    before = everything()
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert message in err and err.startswith("regard: ") and err.count("\n") == 1
    assert everything() == before
