"""`regard import OWNER/NAME` fetches a model through the real client from a hub of the test's own."""

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from regard import cli
from regard.importing.hub import is_hub_name
from regard.modelfile import load_model

MARIAN = Path(__file__).parent / "golden" / "marian"
REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(tmp_path):
    """A hub of three models: one with all that may be in such a folder, and two without safetensors."""
    pytest.importorskip("huggingface_hub", reason="the extra [hub] is not installed")
    models = {name: tmp_path / "hub" / name for name in ("OPUS/opus-mt-fr-en", "OPUS/old", "OPUS/bert")}
    for folder in models.values():
        shutil.copytree(MARIAN, folder)
    whole = models["OPUS/opus-mt-fr-en"]
    (whole / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n")
    (whole / "tf_model.h5").write_bytes(b"not wanted")
    (whole / "pytorch_model.bin").write_bytes(b"not wanted")
    for name, file in (("OPUS/old", "pytorch_model.bin"), ("OPUS/bert", "flax_model.msgpack")):
        (models[name] / "model.safetensors").rename(models[name] / file)
    fetched = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.partition("?")[0].removeprefix("/")
            name = next((one for one in models if one in path), None)
            if name is None:
                self.answer(b"{}", 404, headers={"X-Error-Code": "RepoNotFound"})
                return
            folder, asked = models[name], path.partition(f"{name}/")[2]
            if asked.startswith("revision/"):
                self.answer(json.dumps({"id": name, "sha": REVISION, "siblings": []}).encode())
            elif asked.startswith("tree/"):
                files = [
                    {"type": "file", "path": one.name, "size": one.stat().st_size, "oid": one.name}
                    for one in sorted(folder.iterdir())
                ]
                self.answer(json.dumps(files).encode())
            else:
                file = folder / asked.removeprefix(f"resolve/{REVISION}/")
                if not file.is_file():
                    self.answer(b"", 404, headers={"X-Error-Code": "EntryNotFound"})
                    return
                data = file.read_bytes()
                if self.command == "GET":
                    fetched.append(file.name)
                etag = hashlib.sha1(data).hexdigest()
                headers = {"ETag": f'"{etag}"', "X-Repo-Commit": REVISION}
                self.answer(data, 200, "application/octet-stream", headers)

        do_HEAD = do_GET

        def answer(self, data, status=200, kind="application/json", headers=None):
            self.send_response(status)
            for key, value in {"Content-Type": kind, "Content-Length": len(data), **(headers or {})}.items():
                self.send_header(key, str(value))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", fetched
    server.shutdown()
    thread.join()
    server.server_close()


def call(address, folder, *words):
    """The command in a process of its own: the client reads its environment once."""
    environment = os.environ | {"HF_ENDPOINT": address, "HF_HOME": str(folder / "cache"), "NO_PROXY": "*"}
    return subprocess.run(
        [sys.executable, "-m", "regard", *map(str, words)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_a_named_model_is_fetched_once_with_the_files_that_are_read(hub, tmp_path):
    address, fetched = hub
    done = call(address, tmp_path, "import", "OPUS/opus-mt-fr-en", "--out", "a.regard")
    assert done.returncode == 0, done.stderr
    assert "fr to en" in done.stdout and "licence: cc-by-4.0" in done.stdout
    wanted = {"README.md", "config.json", "model.safetensors", "source.spm", "target.spm", "vocab.json"}
    assert sorted(fetched) == sorted(wanted)
    model = load_model(tmp_path / "a.regard")
    assert model.card["imported"]["name"] == "OPUS/opus-mt-fr-en@0123456789ab"
    fetched.clear()
    assert call(address, tmp_path, "import", "OPUS/opus-mt-fr-en", "--out", "b.regard").returncode == 0
    assert not fetched


def test_what_cannot_be_fetched_is_one_line_and_no_file(hub, tmp_path):
    address, fetched = hub
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{free.getsockname()[1]}"
    for where, name, why in (
        (address, "OPUS/nothing", "no public model of this name"),
        (address, "OPUS/bert", "has neither model.safetensors nor pytorch_model.bin"),
        (address, "OPUS/old", "pytorch_model.bin"),
        (closed, "OPUS/opus-mt-fr-en", "cannot be reached"),
    ):
        done = call(where, tmp_path, "import", name, "--out", "a.regard")
        assert done.returncode == 2 and why in done.stderr and done.stderr.count("\n") == 1, done.stderr
        assert not (tmp_path / "a.regard").exists()
    assert "pytorch_model.bin" in fetched  # and it was no pickle


def test_a_missing_client_is_said_with_the_command_that_installs_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert cli.run(["import", "OPUS/opus-mt-fr-en", "--out", str(tmp_path / "a.regard")]) == 2
    err = capsys.readouterr().err
    assert "OPUS/opus-mt-fr-en: no such folder" in err and "pip install '.[hub]'" in err


def test_only_owner_and_name_are_a_name_of_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "opus").mkdir(parents=True)
    names = ["Helsinki-NLP/opus-mt-fr-en", "a/b.c_d"]
    others = ["opus", "models/opus", "../opus", "a/../b", "/a/b", "a/b/c", "~/opus", "a/b c"]
    assert all(is_hub_name(Path(one)) for one in names) and not any(is_hub_name(Path(one)) for one in others)
