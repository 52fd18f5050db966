"""Damaged, hostile and other files are refused in one line, and without their memory."""

import base64
import json
import tracemalloc
import zlib

import pytest
from traces import N, R, good, good_json

from regard.errors import TraceError
from regard.trace.views import load_trace


def _array(**change):
    def tamper(trace):
        trace["states"]["readout"] |= change

    return tamper


def _deflated(data):
    return base64.b64encode(zlib.compress(data)).decode()


DAMAGED = {
    "no base64": (_array(data="*** not base64 ***"), "damaged"),
    "cut base64": (_array(data="abcde"), "damaged"),
    "not deflated": (_array(data=base64.b64encode(b"hello there").decode()), "damaged"),
    "nothing": (_array(data=""), "bytes of numbers"),
    "too few": (_array(data=_deflated(b"\0\0")), "2 bytes of numbers"),
    "too many": (_array(data=_deflated(b"\0" * 99_999)), "bytes of numbers"),
    "negative": (_array(shape=[-1, 8]), "cannot be"),
    "two negative": (_array(shape=[-1, -8]), "cannot be"),
    "huge": (_array(shape=[10**9, 10**9]), "cannot be"),
    "beyond any number": (_array(shape=[10**40]), "cannot be"),
    "none of very many": (_array(shape=[0, 10**40], data=_deflated(b"")), "cannot be|dimension"),
    "five axes": (_array(shape=[1, 1, 1, 1, 1]), "states.readout.shape"),
    "other kind": (_array(dtype="f8"), "states.readout.dtype"),
    "pickled": (_array(dtype="O"), "states.readout.dtype"),
    "no scale": (_array(dtype="u2"), "scale of None"),
    "scale of 0": (_array(dtype="u2", scale=0.0), "scale of 0"),
    "negative scale": (_array(dtype="u2", scale=-1.0), "scale of -1"),
    "scale of nothing": (_array(dtype="u2", scale=float("nan")), "scale"),
    "endless scale": (_array(dtype="u2", scale=float("inf")), "scale"),
    "more": (_array(code="print(1)"), "states.readout.code"),
}


@pytest.mark.parametrize(("tamper", "told"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_numbers_are_refused(tamper, told, write):
    trace = good(N)
    tamper(trace)
    with pytest.raises(TraceError, match=f"({told})"):
        load_trace(write("damaged.json", json.dumps(trace)))


def test_any_end_that_is_missing_of_packed_numbers_is_found(write):
    trace = good(N)
    data = base64.b64decode(trace["states"]["readout"]["data"])
    for size in (0, 1, 2, 10, len(data) // 2, len(data) - 5, len(data) - 4, len(data) - 1):
        trace["states"]["readout"]["data"] = base64.b64encode(data[:size]).decode()
        with pytest.raises(TraceError, match=r"damaged|bytes of numbers"):
            load_trace(write("cut.json", json.dumps(trace)))


def _peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _bomb(num_megabytes):
    """Deflated zeros, made without ever having them: all blocks but the first are the same bytes."""
    deflate, megabyte = zlib.compressobj(), bytes(1_000_000)
    first, again = (deflate.compress(megabyte) + deflate.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    whole = first + again * (num_megabytes - 1) + b"\x03\x00"  # an empty block is the last
    checksum = 1 + (num_megabytes * 1_000_000 % 65521 << 16)  # Adler-32 of so many zeros
    return base64.b64encode(whole + checksum.to_bytes(4, "big")).decode()


def test_the_bomb_below_is_one():
    assert zlib.decompress(base64.b64decode(_bomb(3))) == bytes(3_000_000)


def test_what_inflates_to_gigabytes_is_refused_without_inflating_it(write):
    trace = good(N)
    trace["states"]["readout"]["data"] = _bomb(3000)
    path = write("bomb.json", json.dumps(trace))
    assert path.stat().st_size < 6_000_000

    def load():
        with pytest.raises(TraceError, match="bytes of numbers"):
            load_trace(path)

    assert _peak(load) < 60_000_000


def test_many_states_that_inflate_together_are_not_all_inflated(write):
    """None of them has a row for each piece; a thousand would be 80 GB in a file of 40 MB."""
    trace = good(N)
    bomb = {"dtype": "f2", "shape": [20_000_000], "data": _bomb(40)}
    trace["states"] |= {f"bomb.{number}": bomb for number in range(4)}
    path = write("bombs.json", json.dumps(trace))

    def load():
        with pytest.raises(TraceError):
            load_trace(path)

    assert _peak(load) < 200_000_000


def test_a_beam_of_very_many_steps_is_refused_without_counting_them(write):
    trace = good(N)
    trace["beam"]["nodes"][-1]["step"] = 50_000_000
    path = write("deep.json", json.dumps(trace))

    def load():
        with pytest.raises(TraceError, match="beam"):
            load_trace(path)

    assert _peak(load) < 60_000_000


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        (b"\xff\xfe\0\0", "no JSON"),
        ("[" * 100_000 + "]" * 100_000, "no JSON"),
        ('{"a":' * 100_000, "no JSON"),
        ("9" * 10_000, "no JSON"),
        ("null", "not a trace"),
        ("[]", "not a trace"),
        ('"regard-trace/1"', "not a trace"),
        ("{}", "not a trace"),
        ('{"format": 1}', "not a trace"),
        ('{"format": "else/1"}', "not a trace"),
        ('{"format": "regard-trace/2"}', r"'regard-trace/2' and this version of regard reads 'regard-trace/1'"),
        ('{"format": "regard-trace/1"}', "id: Field required"),
        ('{"format": "regard-trace/1", "id": NaN}', "id: "),
    ],
    ids=lambda data: str(data)[:30],
)  # fmt: skip
def test_what_is_no_trace_is_refused(data, told, write):
    with pytest.raises(TraceError, match=rf"other\.json: .*{told}"):
        load_trace(write("other.json", data))


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(TraceError, match=r"missing\.json: cannot be read \(No such file"):
        load_trace(tmp_path / "missing.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(TraceError, match=r"folder\.json: cannot be read"):
        load_trace(tmp_path / "folder.json")


def test_a_file_larger_than_any_trace_is_not_even_read(tmp_path):
    path = tmp_path / "large.json"
    with path.open("wb") as stream:
        stream.truncate(100_000_001)
    with pytest.raises(TraceError, match="larger than any trace"):
        load_trace(path)


def test_numbers_that_are_none_are_refused_everywhere(write):
    for place in (("target", "score"), ("metrics", "perplexity"), ("timing", "search")):
        for value in (float("nan"), float("inf")):
            trace = good(N)
            trace[place[0]][place[1]] = value
            with pytest.raises(TraceError, match=rf"{place[0]}\.{place[1]}: .*finite"):
                load_trace(write("none.json", json.dumps(trace)))


@pytest.mark.parametrize("size", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_lost_its_end_is_refused(size, write):
    data = good_json(N).encode()
    with pytest.raises(TraceError, match="damaged"):
        load_trace(write("cut.json", data[: int(size * len(data))]))


@pytest.mark.parametrize("name", [R, N])
def test_a_design_that_cannot_be_is_refused_or_shown_all_the_same(name, write):
    """Whatever `model.options` says: no other error than one of ours."""
    for options in (
        {},
        {"attention": 1, "num_layers": 1},
        {"kind": "\ud800"},
        {"attention": {"kind": "none"}, "num_layers": 10**9},
    ):
        plain = good(name)
        plain["model"]["options"] = options
        try:
            trace = load_trace(write("odd.json", json.dumps(plain)))
        except TraceError:
            continue
        trace.to_json(), trace.to_html(), trace.to_svg(), trace.lines()
