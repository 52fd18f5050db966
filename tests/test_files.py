import gc
import os
import pickle
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from regard.alignment.links import from_pharaoh, to_pharaoh
from regard.cli import run
from regard.corpus.read import open_corpus
from regard.errors import CorpusError, MissingExtraError, OutputError, UnequalError
from regard.files import writing, writing_folder
from regard.training.history import find_runs


def test_files_appear_together_when_the_block_ends(tmp_path):
    paths = [tmp_path / "sub" / "a", tmp_path / "sub" / "b"]
    with writing(*paths) as (first, second):
        first.write(b"1")
        second.write(b"2")
        assert not any(path.exists() for path in paths)
    assert [path.read_bytes() for path in paths] == [b"1", b"2"]
    assert stat.S_IMODE(paths[0].stat().st_mode) == 0o666 & ~_umask()


def _umask():
    umask = os.umask(0)
    os.umask(umask)
    return umask


def test_a_failure_leaves_what_was_there(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(RuntimeError), writing(tmp_path / "a", tmp_path / "b") as (first, _):
        first.write(b"new")
        raise RuntimeError
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_full_disk_is_one_line_and_leaves_what_was_there(tmp_path):
    if not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("this system has no /dev/full")
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(OutputError, match="No space left"), writing(tmp_path / "a") as [file]:
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, file.fileno())
        os.close(full)
        file.write(b"new" * 100_000)
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_file_that_is_replaced_keeps_its_mode_and_a_link_is_followed(tmp_path):
    (tmp_path / "secret").write_bytes(b"old")
    (tmp_path / "secret").chmod(0o600)
    (tmp_path / "link").symlink_to("secret")
    with writing(tmp_path / "link") as [file]:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "secret").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
    if os.geteuid() == 0:
        os.chown(tmp_path / "secret", 4321, 4321)
        with writing(tmp_path / "secret") as [file]:
            file.write(b"newer")
        assert (tmp_path / "secret").stat().st_uid == 4321


def test_a_pipe_or_a_device_is_written_to_and_stays_what_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with writing(tmp_path / "pipe") as [file]:
        file.write(b"through")
    reader.join(10)
    assert read == [b"through"] and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    with writing(Path(os.devnull)) as [file]:
        file.write(b"nowhere")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_pipe_without_a_name_is_written_to_by_the_link_to_it():
    reader, writer = os.pipe()  # as /dev/stdout and `>(command)` name one
    with writing(Path(f"/dev/fd/{writer}")) as [file]:
        file.write(b"through")
    os.close(writer)
    assert os.read(reader, 100) == b"through"
    os.close(reader)


KILLED = """
import os, signal, sys
from pathlib import Path
from regard.files import writing, writing_folder
folder = Path(sys.argv[1])
with (
    writing(folder / "a.fr", folder / "a.en") as sides,
    writing(folder / "m.regard"),
    writing_folder(folder / "m.run", "run.json") as run,
):
    (run / "run.json").write_bytes(b"{}")
    for side in sides:
        side.write(b"oui\\n")
        side.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_leaves_is_mistaken_for_nothing(tmp_path, capfd):
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path])
    left = sorted(path.name for path in tmp_path.iterdir())
    assert done.returncode == -signal.SIGKILL and len(left) == 4
    assert all(name.startswith(".") and name.endswith(".part") for name in left)
    assert find_runs(tmp_path) == []
    with pytest.raises(CorpusError, match="is the unfinished output of another command; name a whole file"):
        open_corpus(sorted(tmp_path.glob(".a.*")))
    assert run(["info", str(next(tmp_path.glob(".m.regard.*")))]) == 2
    assert capfd.readouterr().err.count("\n") == 1
    with writing(tmp_path / "a.fr") as (file,), writing_folder(tmp_path / "m.run", "run.json"):
        file.write(b"non\n")  # the same names can be written as if nothing were there
    assert (tmp_path / "a.fr").read_bytes() == b"non\n" and (tmp_path / "m.run").is_dir()


@pytest.mark.parametrize("ending", ["gz", "xz", "zst"])
def test_the_same_bytes_compress_to_the_same_file(tmp_path, ending):
    for name in ("a", "b"):
        with writing(tmp_path / f"{name}.{ending}") as [file]:
            file.write(b"le chat dort\n" * 1000)
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    assert (tmp_path / f"a.{ending}").stat().st_size < 1000


def test_a_folder_takes_the_place_of_an_older_one_whole(tmp_path):
    target = tmp_path / "store"
    for content in ("one", "two"):
        with writing_folder(target, "mark") as temporary:
            (temporary / "mark").write_text(content)
    assert (target / "mark").read_text() == "two"
    with pytest.raises(RuntimeError), writing_folder(target, "mark") as temporary:
        (temporary / "mark").write_text("three")
        raise RuntimeError
    assert (target / "mark").read_text() == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_folder_that_is_not_ours_is_never_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    (tmp_path / "file").write_text("mine")
    for name in ("thesis", "file"):
        with (
            pytest.raises(OutputError, match="was not written by regard"),
            writing_folder(tmp_path / name, "mark"),
        ):
            pass
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    with writing_folder(tmp_path / "empty", "mark") as temporary:
        (temporary / "mark").write_text("x")
    assert (tmp_path / "empty" / "mark").exists()


@pytest.mark.parametrize("name", ["a", "a.gz", "a.xz", "a.zst"])
def test_a_failure_is_the_only_thing_heard_of(tmp_path, name, capfd):
    with pytest.raises(KeyboardInterrupt), writing(tmp_path / name) as [file]:
        file.write(b"x" * 100_000)
        raise KeyboardInterrupt
    gc.collect()
    assert capfd.readouterr().err == "" and list(tmp_path.iterdir()) == []


def test_a_signal_the_moment_a_file_is_made_leaves_nothing(tmp_path, monkeypatch):
    opened = Path.open

    def interrupted(self, *how):
        opened(self, *how).close()
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "open", interrupted)
    with pytest.raises(KeyboardInterrupt), writing(tmp_path / "a"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [CorpusError("a"), UnequalError("a", 1, 2), MissingExtraError("x", "y")])
def test_errors_survive_the_way_from_a_worker(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)


def test_pharaoh_lines_go_both_ways():
    assert to_pharaoh({(2, 1), (0, 0), (10, 3)}) == "0-0 2-1 10-3"
    assert from_pharaoh("0-0 2-1 10-3\n") == {(2, 1), (0, 0), (10, 3)}
    assert to_pharaoh([]) == "" and from_pharaoh("") == frozenset()


@pytest.mark.parametrize("line", ["0", "a-b", "1-", "1--2", "0-0 ,"])
def test_a_field_that_is_no_link_is_named(line):
    with pytest.raises(ValueError, match="is not a link"):
        from_pharaoh(line)
