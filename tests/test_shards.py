"""A file in shards: the bytes of a plain translation, however often it is stopped and whoever does the work."""

import gzip
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.alignment.files import PairFiles, lines_of
from regard.cli import run
from regard.errors import ConfigError, CorpusError
from regard.shards.cut import Shard, Source
from regard.shards.folder import locked
from regard.shards.on_ray import Worker
from regard.shards.run import on_this_machine

GOLDEN = Path(__file__).parent / "golden" / "model-1.regard"
OTHER = "fr-en-fixed"
QUICK = ("--beam", "1", "--no-guard")
SENTENCES = ["il pleut.", "le chat dort.", "la petite maison est rouge.", "où est le chien ?", ""]
EXACT = ("line", "error", "source", "text", "flags", "words")
# A byte order mark, the line ends of Windows, lines that fail, and a last line without an end.
HARD = b"\xef\xbb\xbfil pleut.\r\n\ncaf\xe9\nle chat dort.\r\nil\0\n\n\nla petite maison.\nil pleut."


@pytest.fixture
def call(capfdbinary):
    """Runs `regard` with these arguments; its exit code, what it prints and what it says, progress left out."""

    def call(*arguments):
        code = run([*map(str, arguments)])
        told = capfdbinary.readouterr()
        said = told.err.decode().splitlines(keepends=True)
        return code, told.out, "".join(line for line in said if line.startswith("regard: "))

    return call


@pytest.fixture
def text(write):
    return write("in.fr", "".join(f"{line}\n" for line in SENTENCES * 12))


def finished(folder):
    """The files of finished shards, and what changes if one is written again."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.glob("0*.txt")}


# The same bytes.


@pytest.mark.parametrize("num_shards", [1, 3, 20])
@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_joined_shards_are_the_bytes_of_a_plain_translation(call, write, tmp_path, ending, num_shards):
    pack = {"": bytes, ".gz": gzip.compress, ".zst": pytest.importorskip("zstandard").compress}
    path, folder = write(f"in.fr{ending}", pack[ending](HARD)), tmp_path / "out"
    code, plain, said = call("translate", GOLDEN, "--file", path, *QUICK)
    assert code == 3 and plain.count(b"\n") == 9
    done = call("translate", GOLDEN, path, "--shards", num_shards, "--out", folder, *QUICK)
    told = (
        f"regard: all {num_shards} shards are done; to join them: regard translate --join {folder} --out FILE"
    )
    assert done[:2] == (3, b"") and sorted(done[2].splitlines()) == sorted([*said.splitlines(), told])
    assert call("translate", "--join", folder) == (3, plain, said)
    again = call("translate", GOLDEN, path, "--shards", num_shards, "--out", folder, *QUICK)
    assert (again[0], sorted(again[2].splitlines())) == (
        3,
        sorted(done[2].splitlines()),
    )  # what it says is kept too


def test_json_has_the_numbers_of_the_lines_in_the_whole_file(call, write, tmp_path):
    """Scores are rounded otherwise in other batches, so not every byte of them is the same."""
    path, folder = write("in.fr", HARD), tmp_path / "out"
    _, plain, _ = call("translate", GOLDEN, "--file", path, *QUICK, "--jsonl")
    call("translate", GOLDEN, path, "--shards", 3, "--out", folder, *QUICK, "--jsonl")
    _, joined, _ = call("translate", "--join", folder)
    for one, other in zip(plain.splitlines(), joined.splitlines(), strict=True):
        one, other = json.loads(one), json.loads(other)
        assert one["score"] == pytest.approx(other["score"], rel=1e-5)
        assert {key: one.get(key) for key in EXACT} == {key: other.get(key) for key in EXACT}


def test_every_option_of_a_translation_holds_in_shards(call, write, tmp_path):
    text = write("in.fr", "".join(f"{line}\n" for line in SENTENCES))
    terms = write("terms.tsv", "chat\tdog\n")
    search = ("--beam", 2, "--nbest", 2, "--set", "length_penalty=0.5")
    flags = (*search, "--engine", "numpy", "--glossary", terms)
    _, plain, said = call("translate", GOLDEN, "--file", text, *flags)
    call("translate", GOLDEN, "--file", text, "--shards", 4, "--out", tmp_path / "out", *flags)
    assert call("translate", "--join", tmp_path / "out") == (0, plain, said) and "glossary" in said
    begun = ("translate", GOLDEN, text, "--shards", 4, "--out", tmp_path / "out", *flags)
    for flag in (("--prefix", "the"), ("--set", "max_ratio=3"), ("--no-guard",)):
        code, out, err = call(*begun, *flag)
        assert code == 2 and "was begun otherwise" in err and not out, (flag, err)


@settings(max_examples=50)
@given(st.binary(max_size=60).map(lambda one: one.replace(b"a", b"\n")), st.integers(1, 9))
def test_shards_are_whole_lines_and_all_of_them(tmp_path_factory, content, num_shards):
    path = tmp_path_factory.mktemp("cut") / "in.fr"
    path.write_bytes(content)
    source = Source(path)
    shards = source.cut(num_shards)
    tasks = list(source.read_tasks(shards))
    assert [one.number for one in shards] == [one.number for one in tasks] == list(range(1, num_shards + 1))
    assert b"".join(task.text for task in tasks) == content
    cuts = [task.text for task in tasks if task.text][:-1]
    assert all(text.endswith(b"\n") for text in cuts)
    assert [len(io.BytesIO(task.text).readlines()) for task in tasks] == [one.num_lines for one in shards]
    assert (
        all(b.first_line == a.first_line + a.num_lines for a, b in pairwise(shards))
        and shards[0].first_line == 1
    )
    packed = Source(path.with_name("in.fr.gz"))
    packed.path.write_bytes(gzip.compress(content))
    assert packed.cut(num_shards) == shards
    assert list(packed.read_tasks(shards[1::2])) == tasks[1::2]


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.text("a\r é", max_size=3), st.text("b\r", max_size=9)), min_size=1, max_size=40),
    st.integers(1, 9), st.integers(1, 7), st.sampled_from(["", "\ufeff"]), st.booleans(),
)  # fmt: skip
def test_shards_of_two_files_have_the_pairs_of_both(
    tmp_path_factory, pairs, num_shards, multiple, mark, ends
):
    folder = tmp_path_factory.mktemp("cut")
    paths = folder / "in.fr", folder / "in.en"
    for path, side in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text(mark + "x" + "\n".join(side) + ("\n" if ends else "!"), "utf-8", newline="")
    source = Source(*paths, multiple)
    shards = source.cut(num_shards)
    assert [Shard.from_json(json.loads(json.dumps(one.to_json()))) for one in shards] == shards
    assert not any(one.num_lines % multiple for one, later in pairwise(shards) if later.num_lines)
    found = [
        pair
        for task in source.read_tasks(shards)
        for pair in zip(
            *(lines_of(side, is_first=task.first_line == 1) for side in (task.text, task.beside)), strict=True
        )
    ]
    assert found == list(PairFiles(*paths))


# One shard at a time.


def test_a_scheduler_does_the_shards_in_any_order_and_join_waits_for_all(call, text, tmp_path):
    folder = tmp_path / "out"
    _, plain, _ = call("translate", GOLDEN, "--file", text, *QUICK)
    assert "has no shards.json" in call("translate", "--join", folder)[2]
    for number in (3, 1):
        assert call("translate", GOLDEN, text, "--shard", f"{number}/4", "--out", folder, *QUICK)[0] == 0
    code, out, err = call("translate", "--join", folder)
    assert (code, out) == (2, b"") and "2 of 4 shards are missing, the first is number 2" in err
    before = finished(folder)
    call("translate", GOLDEN, text, "--shards", 4, "--out", folder, *QUICK)
    assert len(finished(folder)) == 4 and before.items() <= finished(folder).items()
    _, _, said = call("translate", "--join", folder, "--out", tmp_path / "out.en.gz")
    assert f"wrote {tmp_path / 'out.en.gz'}: 60 lines of 4 shards" in said
    assert gzip.decompress((tmp_path / "out.en.gz").read_bytes()) == plain


def test_many_processes_begin_a_folder_at_once(text, tmp_path):
    command = [sys.executable, "-m", "regard", "translate", GOLDEN, text, "--out", tmp_path / "out", *QUICK]
    started = [subprocess.Popen([*command, "--shard", f"{n}/4"], stderr=subprocess.PIPE) for n in (1, 2)]
    assert [one.communicate() and one.returncode for one in started] == [0] * 2
    assert len(finished(tmp_path / "out")) == 2


# Stopped.


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_where_it_stopped(call, write, tmp_path):
    num_shards, seed = 40, random.randrange(1000)
    path = write("in.fr", "".join(f"{line}\n" for line in SENTENCES * 200))
    command = ["translate", GOLDEN, path, "--shards", num_shards, "--out", tmp_path / "out", *QUICK]
    kept = {}
    for enough in sorted(random.Random(seed).sample(range(num_shards - 3), 2)):
        process = subprocess.Popen(
            [sys.executable, "-m", "regard", *map(str, command)], start_new_session=True
        )
        while len(finished(tmp_path / "out")) <= enough and process.poll() is None:
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        now = finished(tmp_path / "out")
        assert kept.items() <= now.items(), f"seed {seed}"
        kept = now
    assert len(kept) < num_shards, "killed too late to show anything"
    assert call(*command)[0] == 0
    assert kept.items() <= finished(tmp_path / "out").items(), f"seed {seed}"
    assert not list((tmp_path / "out").glob(".*"))  # nothing unfinished is left
    _, plain, _ = call("translate", GOLDEN, "--file", path, *QUICK)
    assert call("translate", "--join", tmp_path / "out")[1] == plain


def test_a_folder_belongs_to_one_run_at_a_time(call, text, tmp_path):
    holding = (
        "import sys; from pathlib import Path; from regard.shards.folder import locked\n"
        "with locked(Path(sys.argv[1]), eval(sys.argv[2])): print('locked', flush=True); sys.stdin.read()"
    )
    whole, second = ("--shards", 4), ("--shard", "2/4")
    folder = tmp_path / "out"
    for held, asked, message in (
        ("None", whole, "a run is being worked on by another process"),
        ("None", second, "shard 2, or all of it, is being worked on"),
        ("2", whole, "a run is being worked on"),
        ("2", second, "shard 2, or all of it, is being worked on"),
        ("3", second, ""),
    ):
        command = [sys.executable, "-c", holding, folder, held]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            other.stdout.readline()
            code, _, err = call("translate", GOLDEN, text, *asked, "--out", folder, *QUICK)
            other.kill()
        assert (code == 2) == bool(message) and message in err, (held, asked)
    with locked(folder, None):  # the lock of a killed process is free
        pass


def test_a_run_that_is_stopped_says_how_to_go_on(call, text, tmp_path, monkeypatch):
    def stopped(work, tasks, num_tasks):
        yield from islice(on_this_machine(work, tasks, num_tasks), 3)
        raise KeyboardInterrupt

    monkeypatch.setattr("regard.cli.shards._execute", lambda _: stopped)
    code, _, err = call("translate", GOLDEN, text, "--shards", 9, "--out", tmp_path / "out", *QUICK)
    assert code == 130 and "stopped with 3 of 9 shards done; the same command goes on from there" in err


def test_a_run_that_cannot_begin_leaves_nothing_behind(call, text, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter.txt").write_text("mine")
    for file, num_shards, folder in (
        ("none.fr", 4, tmp_path / "new"), (text, 0, tmp_path / "new"), (text, 4, mine),
    ):  # fmt: skip
        assert call("translate", GOLDEN, file, "--shards", num_shards, "--out", folder, *QUICK)[0] == 2
    assert not (tmp_path / "new").exists() and [one.name for one in mine.iterdir()] == ["letter.txt"]


# Changed.


def test_what_has_changed_is_named_and_nothing_is_mixed(call, text, tmp_path):
    folder = tmp_path / "out"
    begun = ("translate", GOLDEN, text, "--shards", 4, "--out", folder, *QUICK)
    call(*begun)
    before = finished(folder)
    for changed, message in (
        ((*begun[:-1], "--jsonl"), "guard was False and is True; jsonl was False"),
        ((*begun[:7], "--no-guard"), "search.beam_size was 1 and is 5"),
        (("translate", OTHER, *begun[2:]), "model was"),
        ((*begun[:4], 5, *begun[5:]), "--shards was 4 and is 5"),
        ((*begun[:3], "--shard", "1/9", *begun[5:]), "--shards was 4 and is 9"),
    ):
        code, _, err = call(*changed)
        assert code == 2 and all(part in err for part in message.split("; ")), (changed, err)
    os.utime(text)  # another time, the same text
    assert call(*begun)[0] == 0
    text.write_text(text.read_text().replace("chat", "chien", 1))
    code, _, err = call(*begun)
    assert code == 2 and f"the text of {text} is another" in err
    assert finished(folder) == before


def test_a_file_that_changes_while_it_is_translated_is_found_out(text):
    shards = Source(text).cut(4)
    text.write_bytes(text.read_bytes().replace(b"chat", b"chou"))
    with pytest.raises(CorpusError, match="lines 1 to 15 have changed since the file was cut"):
        list(Source(text).read_tasks(shards))


def test_a_damaged_folder_is_named(call, text, tmp_path):
    folder = tmp_path / "out"
    call("translate", GOLDEN, text, "--shards", 3, "--out", folder, *QUICK)
    second = next(folder.glob("00002-*.txt"))
    second.write_bytes(second.read_bytes() + b"more\n")
    assert re.search(
        r"00002-.*\.txt: has \d+ lines for \d+; remove it", call("translate", "--join", folder)[2]
    )
    (folder / "shards.json").write_text(json.dumps({"format": "regard-shards/9"}))
    assert "shards.json: cannot be read" in call("translate", "--join", folder)[2]
    (folder / "shards.json").unlink()
    assert (
        "has other files in it" in call("translate", GOLDEN, text, "--shards", 3, "--out", folder, *QUICK)[2]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("IN", "--shards", "4"), "name it: --out FOLDER"),
        (("IN", "--shards", "0", "--out", "OUT"), "--shards 0 is not valid"),
        (("IN", "--shard", "5/4", "--out", "OUT"), "--shard 5/4 is not valid"),
        (("IN", "--shard", "1/4", "--shards", "4", "--out", "OUT"), "leave out --shards and --on"),
        (("IN", "--shards", "4", "--given", "IN", "--out", "OUT"), "--given is not for shards"),
        (("IN", "--shards", "4", "--memory", "IN", "--out", "OUT"), "--memory is not for shards"),
        (("IN", "--shards", "4", "--fuzzy", "0", "--out", "OUT"), "--fuzzy is not for shards"),
        (("IN", "--shards", "4", "--to", "fra", "--out", "OUT"), "--to is not for shards"),
        (("IN", "--shards", "4", "--out", "IN"), "is a file; shards go into a folder"),
        (("IN", "IN", "--shards", "4", "--out", "OUT"), "shards are made of one file"),
        (("--shards", "4", "--out", "OUT"), "shards are made of one file"),
        (("none.fr", "--shards", "4", "--out", "OUT"), "none.fr: cannot be opened"),
        (("--file", "/dev/null", "--shards", "4", "--out", "OUT"), "is no regular file"),
        (("IN", "--on", "ray"), "--on ray is for shards"),
        (("IN", "--join", "OUT"), "--join takes only the folder"),
        (("--join", "IN"), "in.fr: is a file; name the folder"),
    ],
)
def test_mistakes_are_told_in_a_line(call, text, tmp_path, arguments, message):
    named = {"IN": text, "OUT": tmp_path / "out"}
    model = () if arguments[0] == "--join" else (GOLDEN,)
    code, out, err = call("translate", *model, *(named.get(one, one) for one in arguments))
    assert (code, out) == (2, b"") and message in err and err.count("\n") == 1


# Elsewhere.


def test_a_machine_with_another_version_is_refused():
    with pytest.raises(ConfigError, match="install the same version on all"):
        Worker().start("0.0.9", [])


def test_without_ray_the_extra_is_named(call, text, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, err = call("translate", GOLDEN, text, "--shards", 4, "--out", tmp_path / "out", "--on", "ray")
    assert code == 2 and "needs the extra [ray]" in err
