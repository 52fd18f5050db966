"""Files behind URLs: what is read, what is written whole, and what shards keep there."""

import gzip
import sys
from pathlib import Path

import pytest

from regard.cli import run
from regard.files import writing
from regard.remote import Remote, place

fsspec = pytest.importorskip("fsspec", reason="the extra [remote] is not installed")

GOLDEN = str(Path(__file__).parent / "golden" / "model-1.regard")
QUICK = ("--beam", "1", "--no-guard")
TEXT = b"il pleut.\nle chat dort.\n\nla petite maison est rouge.\n" * 5


@pytest.fixture
def memory():
    """The URL of an empty folder in memory."""
    yield "memory://bucket"
    fsspec.filesystem("memory").store.clear()


@pytest.fixture
def s3(monkeypatch):
    """The URL of an empty bucket of a server on this machine."""
    server = pytest.importorskip("moto.server", reason="moto[server] is not installed")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed")
    serving = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    serving.start()
    port = serving.get_host_and_port()[1]
    for name, value in (
        ("ENDPOINT_URL", f"http://127.0.0.1:{port}"),
        ("ACCESS_KEY_ID", "a"),
        ("SECRET_ACCESS_KEY", "b"),
    ):
        monkeypatch.setenv(f"AWS_{name}", value)
    s3fs.S3FileSystem.clear_instance_cache()
    s3fs.S3FileSystem().mkdir("bucket")
    yield "s3://bucket"
    s3fs.S3FileSystem.clear_instance_cache()
    serving.stop()


@pytest.mark.parametrize("store", ["memory", pytest.param("s3", marks=pytest.mark.slow)])
def test_text_shards_and_result_may_be_behind_urls(store, request, tmp_path, capfd):
    url = request.getfixturevalue(store)
    (tmp_path / "in.fr").write_bytes(TEXT)
    with writing(Remote(f"{url}/in.fr.gz")) as (stream,):
        stream.write(TEXT)
    begun = ("translate", GOLDEN, f"{url}/in.fr.gz", "--out", f"{url}/shards", *QUICK)
    assert run([*begun, "--shard", "2/3"]) == 0
    before = Remote(f"{url}/shards/shards.json").stat()
    assert run([*begun, "--shards", "3"]) == 0
    assert Remote(f"{url}/shards/shards.json").stat() == before
    names = sorted(one.name for one in Remote(f"{url}/shards").iterdir())
    assert [name[:5] for name in names] == ["00001", "00001", "00002", "00002", "00003", "00003", "shard"]
    assert run(["translate", "--join", f"{url}/shards", "--out", f"{url}/out.en.gz"]) == 0
    assert run(["translate", GOLDEN, "--file", f"{url}/in.fr.gz", "--out", f"{url}/plain.en", *QUICK]) == 0
    assert (
        run(["translate", GOLDEN, "--file", str(tmp_path / "in.fr"), "--out", str(tmp_path / "en"), *QUICK])
        == 0
    )
    plain = (tmp_path / "en").read_bytes()
    assert gzip.decompress(Remote(f"{url}/out.en.gz").open().read()) == plain
    assert Remote(f"{url}/plain.en").open().read() == plain
    with writing(Remote(f"{url}/in.fr.gz")) as (stream,):
        stream.write(TEXT.replace(b"chat", b"chou"))
    capfd.readouterr()
    assert run([*begun, "--shards", "3"]) == 2 and "is another" in capfd.readouterr().err


def test_a_file_behind_a_url_appears_whole_or_not_at_all(memory, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    target = Remote(f"{memory}/a.txt")
    for text, fails in ((b"first", False), (b"second", True)):
        try:
            with writing(target) as (stream,):
                stream.write(text)
                assert not fails
        except AssertionError:
            pass
        assert target.open().read() == b"first" and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--file", "memory://none.fr"), "memory://none.fr: cannot be opened (no such file)"),
        (("--join", "memory://none"), "memory://none: has no shards.json"),
        (("--file", "nothing://a/in.fr"), "nothing://a/in.fr: cannot be used (Protocol not known: nothing"),
        ((GOLDEN, "letter.md", "--out", "memory://a/letter.md"), "documents are written to this machine"),
    ],
)
def test_mistakes_are_told_in_a_line(words, told, memory, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("letter.md").write_text("il pleut.")
    assert run(["translate", *words]) == 2
    err = capfd.readouterr().err
    assert told in err and err.count("\n") == 1


def test_without_fsspec_the_extra_is_named(monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert run(["translate", "--file", "s3://bucket/in.fr"]) == 2
    assert "needs the extra [remote]" in capfd.readouterr().err


def test_only_urls_are_remote():
    assert place("s3://bucket/in.fr") == Remote("s3://bucket/in.fr") and place("s3:/in.fr") == Path(
        "s3:/in.fr"
    )
    assert str(Remote("s3://bucket/a/") / "in.fr.gz") == "s3://bucket/a/in.fr.gz"
    assert (
        Remote("s3://b/in.fr.gz").with_suffix("") == Remote("s3://b/in.fr")
        and Remote("s3://b/in.fr").suffix == ".fr"
    )
