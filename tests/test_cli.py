"""The command line as a user meets it: a process, its output, its exit code."""

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import threadpoolctl

import regard
from regard import cli, doctor
from regard.cli import run
from regard.cli.progress import progress
from regard.corpus.inspect import inspect
from regard.corpus.read import open_corpus
from regard.files import writing

COMMAND = [sys.executable, "-m", "regard"]
VERBS = ["train", "runs", "inspect", "sample", "doctor"]


def call(*arguments, **options):
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, **options)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    done = call("sample", "--pairs", 300, "--out", folder)
    assert done.returncode == 0 and "300 pairs" in done.stdout
    return folder


@pytest.mark.parametrize("arguments", [["--help"], *([verb, "--help"] for verb in VERBS)])
def test_help_answers_at_once_and_gives_examples(arguments):
    seconds = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = call(*arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)  # what it costs, whoever else is at work
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.returncode == 0 and "usage: regard" in done.stdout
    assert min(seconds) < 0.3


def test_help_imports_nothing_heavy():
    code = "import sys, regard.cli; print([m for m in ('torch', 'numpy', 'pydantic', 'rich', 'regex') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_the_version_is_told():
    assert call("--version").stdout == f"regard {regard.__version__}\n"


def test_a_sample_corpus_has_three_files_of_the_same_length(corpus):
    assert {path.name for path in corpus.iterdir()} == {"sample.fr", "sample.en", "sample.align"}
    assert {len(path.read_text().splitlines()) for path in corpus.iterdir()} == {300}


def test_inspect_prints_a_report_and_writes_a_clean_copy(corpus, tmp_path):
    lines = (corpus / "sample.fr").read_text().splitlines()
    lines[41] = ""
    (tmp_path / "a.fr").write_text("\n".join(lines) + "\n")
    (tmp_path / "a.en").write_text((corpus / "sample.en").read_text())
    done = call("inspect", tmp_path / "a.fr", tmp_path / "a.en", "--clean", tmp_path / "good")
    assert done.returncode == 0, done.stderr
    assert "fr -> en" in done.stdout and "300 pairs" in done.stdout
    assert "PROBLEM empty: 1" in done.stdout and "line 42: source is empty" in done.stdout
    assert "empty 1" in done.stdout.splitlines()[-1]
    good = [len((tmp_path / name).read_text().splitlines()) for name in ("good.fr", "good.en")]
    assert good[0] == good[1] < 300


def test_inspect_speaks_json(corpus):
    done = call("inspect", corpus / "sample.fr", corpus / "sample.en", "--json")
    report = json.loads(done.stdout)
    assert report["pairs"] == 300 and report["source_language"] == "fr" and report["clean"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "VERB"),
        (["inspekt"], "invalid choice: 'inspekt'"),
        (["inspect", "nowhere.fr", "nowhere.en"], "nowhere.fr: no such file"),
        (["inspect", "."], "is a folder"),
        (["sample"], "--out"),
        (["sample", "--out", "x", "--pairs", "0"], "--pairs 0 is not valid"),
        (["sample", "--out", "x", "--pairs", "many"], "invalid int value"),
        (["inspect", "a.tmx", "--keep"], "expected one argument"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_two(arguments, message, tmp_path):
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("regard: ") and done.stderr.count("\n") == 1
    assert message in done.stderr


def test_wrong_options_fail_before_the_work(corpus, tmp_path):
    (tmp_path / "good.fr").write_text("mine\n")
    done = call("inspect", corpus / "sample.fr", corpus / "sample.en", "--clean", tmp_path / "good")
    assert done.returncode == 2 and "exists already" in done.stderr and done.stdout == ""
    assert (tmp_path / "good.fr").read_text() == "mine\n"
    done = call(
        "inspect", corpus / "sample.fr", corpus / "sample.en", "--clean", tmp_path / "x", "--keep", "lenght"
    )
    assert done.returncode == 2 and "'lenght' is not a rule" in done.stderr


def test_debug_shows_the_traceback(tmp_path):
    done = call("inspect", tmp_path / "nowhere.fr", tmp_path / "nowhere.en", "--debug")
    assert done.returncode != 0 and "Traceback" in done.stderr


_KILLED = """
import os, sys, time
from regard.cli import doctor, main
def kill():
    os.kill(os.getpid(), int(sys.argv[1]))
    time.sleep(0.1)
class Finaliser:
    def __del__(self):
        kill()
def changes():
    try:
        kill()
    except BaseException as error:
        raise ValueError from error
def run(options):
    eval(sys.argv[2])
    time.sleep(60)
doctor.run = run
main(["doctor"])
"""


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("within", ["__import__('swallows')", "Finaliser()", "changes()"])
def test_a_signal_is_not_lost(number, code, within, tmp_path):
    """Not in an import that swallows every error, nor in a finaliser, nor if it becomes another error."""
    (tmp_path / "swallows.py").write_text(
        "import __main__\ntry:\n    __main__.kill()\nexcept BaseException:\n    pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(int(number)), within], cwd=tmp_path, capture_output=True, timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert done.returncode == code and done.stdout == b"" and b"Traceback" not in done.stderr


def test_an_interrupt_that_a_library_made_another_error_of_is_told(monkeypatch, capsys):
    def interrupted(_):
        raise RuntimeError("the library was disturbed")

    monkeypatch.setattr(cli, "_signal", signal.SIGINT)
    monkeypatch.setattr(cli, "_parse", lambda _: argparse.Namespace(run=interrupted))
    assert cli.run([]) == 130 and capsys.readouterr().err == "regard: interrupted\n"


def test_an_interrupt_ends_with_130_and_leaves_nothing(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "demo", "--out", tmp_path / "out" / "page.html"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # What is started in the background of a shell ignores it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while not list(tmp_path.glob("out/.*.part")):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130 and errors.decode() == "regard: interrupted\n"
    assert list((tmp_path / "out").iterdir()) == []


def test_a_reader_that_leaves_early_is_no_error(corpus):
    command = f"{sys.executable} -m regard inspect {corpus}/sample.fr {corpus}/sample.en --json | head -c 10; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in done.stderr and done.returncode in (0, 141)


def test_output_that_cannot_be_written_is_one_line(corpus):
    if not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:  # noqa: PTH123
        command = [*COMMAND, "inspect", corpus / "sample.fr", corpus / "sample.en"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr == "regard: No space left on device\n"


@pytest.mark.parametrize(
    ("closed", "arguments", "code", "said"),
    [
        (">&-", "--version", 2, "regard: standard output is closed; send it to a file, or to /dev/null\n"),
        (
            ">&-",
            "translate --help",
            2,
            "regard: standard output is closed; send it to a file, or to /dev/null\n",
        ),
        (
            ">&-",
            "translate 'il pleut'",
            2,
            "regard: standard output is closed; send it to a file, or to /dev/null\n",
        ),
        (">&-", "info fr-en", 2, "regard: standard output is closed; send it to a file, or to /dev/null\n"),
        (">&-", "translate 'il pleut' --out {out}", 0, ""),
        ("<&- >&- 2>&-", "translate 'il pleut' --out {out}", 0, ""),
        ("<&- >&- 2>&-", "translate 'il pleut'", 2, ""),
        ("2>&-", "translate 'il pleut'", 0, "It's raining.\n"),
        ("2>&-", "runs /no/such/folder", 2, ""),
        ("<&-", "translate 'il pleut'", 0, "It's raining.\n"),
        ("<&-", "translate", 2, "regard: standard input is closed; give the text in quotes, or a file\n"),
        ("<&-", "show", 2, "regard: standard input is closed; give the text in quotes, or a file\n"),
    ],
)
def test_a_closed_standard_stream_is_one_line_or_silence(closed, arguments, code, said, tmp_path):
    out = tmp_path / "out.txt"
    command = f"{sys.executable} -m regard {arguments.format(out=out)} {closed}"
    done = subprocess.run(
        ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert (done.returncode, done.stdout) == (code, said)
    if "--out" in arguments:  # nothing that was meant for a closed stream has landed in the file
        assert out.read_text() == "It's raining.\n"


def test_help_that_cannot_be_written_is_one_line():
    if not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run([*COMMAND, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr == "regard: No space left on device\n"


def test_a_termination_leaves_no_temporary_file(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "demo", "--out", tmp_path / "out" / "page.html"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    while not list(tmp_path.glob("out/.*.part")):
        time.sleep(0.02)
    process.terminate()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 143 and errors == b""
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
def test_a_folder_with_modules_of_the_same_name_does_no_harm(corpus, tmp_path, monkeypatch):
    for name in ("random.py", "regex.py", "numpy.py"):
        (tmp_path / name).write_text("raise SystemExit('imported from the current folder')\n")
    big = tmp_path / "big"
    assert call("sample", "--pairs", 12000, "--out", big).returncode == 0
    regard_command = [sys.executable, "-P", "-m", "regard"]
    done = subprocess.run(
        [*regard_command, "inspect", big / "sample.fr", big / "sample.en"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_a_fault_of_ours_is_one_line_too(monkeypatch, capsys):
    from regard.cli import doctor

    monkeypatch.setattr(doctor, "run", lambda options: 1 / 0)
    assert run(["doctor"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("fail", [lambda: bytearray(1 << 62), lambda: np.zeros((1 << 31, 1 << 31), np.int8)])
def test_too_little_memory_is_no_fault_of_ours(fail, monkeypatch, capsys):
    from regard.cli import doctor

    monkeypatch.setattr(doctor, "run", lambda options: fail())
    assert run(["doctor"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("regard: not enough memory; close other programs") and error.count("\n") == 1


def test_too_little_memory_for_a_model_is_one_line(corpus, tmp_path):
    sides = [corpus / "sample.fr", corpus / "sample.en"]
    wide = ["--preset", "bahdanau2015", "--steps", 1, "--set", f"model.hidden_size={1 << 20}"]
    done = call(
        "train",
        *sides,
        *wide,
        "--out",
        tmp_path / "big.regard",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30)),
    )
    assert done.returncode == 2 and "enough memory; try" in done.stderr.splitlines()[-1]


def test_a_terminal_without_unicode_is_no_error(corpus):
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = call("inspect", corpus / "sample.fr", corpus / "sample.en", env=environment)
    assert done.returncode == 0 and "\\u2588" in done.stdout


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    done = call("sample", "--pairs", 10, "--out", tmp_path / "file")
    assert done.returncode == 2 and "cannot be written" in done.stderr


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
@pytest.mark.parametrize("verb", ["inspect", "train", "translate", "evaluate", "align"])
def test_a_compression_bomb_of_short_lines_is_refused_soon(verb, ending, tmp_path, capsys):
    sides = [tmp_path / f"a.{language}{ending}" for language in ("fr", "en")]
    with writing(*sides) as files:
        for file in files:
            for _ in range(20):
                file.write(b"a\n" * (1 << 19))
    assert all(side.stat().st_size < 100_000 for side in sides)
    arguments = {
        "inspect": [*sides, "--clean", tmp_path / "clean"],
        "train": [*sides, "--steps", 1, "--out", tmp_path / "m.regard"],
        "translate": ["fr-en", "--file", sides[0], "--out", tmp_path / "out.en"],
        "evaluate": ["fr-en", *sides],
        "align": [*sides, "--words", "--out", tmp_path / "links"],
    }[verb]
    assert run([verb, *map(str, arguments)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(
        f"regard: {sides[0]}: expands to more than 16,777,216 bytes, 100 times its size; "
    )
    assert "--max-expansion 1000" in error and error.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == sorted(sides)


def test_the_limit_on_expansion_can_be_raised(tmp_path, capsys):
    path = tmp_path / "a.tsv.zst"
    with writing(path) as (file,):
        file.write(b"oui, bien\tyes, well\n" + b" " * ((1 << 20) - 1) + b"\n")
        for _ in range(16):
            file.write(b" " * ((1 << 20) - 1) + b"\n")
    assert run(["inspect", str(path)]) == 2 and "--max-expansion 1000" in capsys.readouterr().err
    assert (
        run(["inspect", str(path), "--max-expansion", "100000"]) != 0
    )  # what is wrong with it now is its content
    assert "expands" not in capsys.readouterr().err
    assert run(["inspect", str(path), "--max-expansion", "0"]) == 2
    assert "give 1 or more" in capsys.readouterr().err


def test_progress_is_plain_lines_where_there_is_no_terminal(corpus, capsys):
    with progress(patience_seconds=-1, line_every_seconds=-1) as show:
        inspect(open_corpus([corpus / "sample.fr", corpus / "sample.en"]), on_progress=show)
    lines = capsys.readouterr().err.splitlines()
    assert "checking pairs: 100 %" in lines and all(re.fullmatch(r"[a-z ]+: \d+ %", line) for line in lines)


def test_progress_is_a_bar_on_a_terminal(corpus):
    import pty

    reader, writer = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "inspect", corpus / "sample.fr", corpus / "sample.en"],
        stderr=writer,
        stdout=subprocess.PIPE,
    )
    os.close(writer)
    shown = b""
    while True:
        try:
            chunk = os.read(reader, 1 << 16)
        except OSError:  # the other end has gone
            break
        if not chunk:
            break
        shown += chunk
    os.close(reader)
    process.communicate()
    assert process.returncode == 0 and b"checking pairs" in shown and "━".encode() in shown


@pytest.mark.slow
def test_the_doctor_reports_this_machine():
    done = call("doctor", "--json", timeout=400)
    findings = json.loads(done.stdout)
    assert done.returncode == 0
    assert findings["Python"]["value"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    assert int(findings["cores"]["value"].split()[0]) >= 1
    assert findings["temporary folder"]["fine"]
    try:
        import torch  # noqa: F401
    except ImportError:
        assert "float32" not in findings
    else:
        assert findings["float32"]["value"] == "works"


AVX512 = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "avx2"}


@pytest.mark.parametrize(
    ("kernels", "flags", "asked", "advice"),
    [
        ("Haswell", AVX512, None, "OPENBLAS_CORETYPE=SkylakeX"),
        ("Haswell", AVX512, "Haswell", "since OPENBLAS_CORETYPE=Haswell is set; faster here: unset it"),
        ("Haswell", {"avx2"}, "Haswell", None),
        ("SkylakeX", AVX512, None, None),
    ],
)
def test_the_doctor_says_when_the_matrix_library_leaves_avx512_unused(
    monkeypatch, kernels, flags, asked, advice
):
    library = {"user_api": "blas", "internal_api": "openblas", "version": "0.3.31", "architecture": kernels}
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: [library])
    monkeypatch.setattr(doctor, "processor_words", lambda: flags)
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    if asked is not None:
        monkeypatch.setenv("OPENBLAS_CORETYPE", asked)
    found = doctor._matrix_library()
    assert found.value.startswith(f"openblas 0.3.31, made for {kernels}")
    assert (advice is None) == ("OPENBLAS_CORETYPE" not in found.value) == (found.fine is not None)
    assert advice is None or advice in found.value


@pytest.mark.slow
def test_the_doctor_survives_a_precision_that_kills_the_process(monkeypatch):
    pytest.importorskip("torch", reason="precisions are probed with torch")
    monkeypatch.setitem(doctor._PROBES, "bfloat16", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    results = doctor.probe_precisions()
    assert results["float32"] == "works"
    assert results["bfloat16"] == "dies with SIGILL; not used"
    assert list(results) == list(doctor._PROBES)
