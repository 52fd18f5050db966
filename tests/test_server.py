"""The server, spoken to by a plain HTTP client: every API, every limit."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from serving import serving

import regard
from regard.server.languages import detect
from regard.trace.make import Tracer

pytest.importorskip("fastapi")

FRENCH = "Je suis étudiant."
ENGLISH = "I'm a student."
ASK = {"q": FRENCH, "source": "fr", "target": "en"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with serving(
        folder, "fr-en", "en-fr", "ko-en", "fr-en-rnn", "--suggestions", folder / "s.db", "--workers", "2"
    ) as one:
        yield one


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (json.dumps(ASK), {"content-type": "application/json"}),
        (json.dumps(ASK), {"content-type": "application/x-www-form-urlencoded"}),  # as curl -d sends it
        (json.dumps(ASK), {}),
        (
            "q=Je+suis+%C3%A9tudiant.&source=FR&target=en-GB&unknown=1",
            {"content-type": "application/x-www-form-urlencoded"},
        ),
        (
            '--x\r\ncontent-disposition: form-data; name="q"\r\n\r\nJe suis étudiant.\r\n--x\r\ncontent-disposition: '
            'form-data; name="source"\r\n\r\nfr\r\n--x\r\ncontent-disposition: form-data; name="target"\r\n\r\nen\r\n--x--\r\n',
            {"content-type": "multipart/form-data; boundary=x"},
        ),
    ],
)
def test_a_body_may_have_any_of_the_usual_forms(server, body, headers):
    assert server.post("/translate", body, **headers) == (200, {"translatedText": ENGLISH})


def test_everything_may_stand_in_the_query_and_a_slash_at_the_end(server):
    path = "/translate/?q=Je%20suis%20%C3%A9tudiant.&source=fr&target=en"
    assert server.post(path, "") == (200, {"translatedText": ENGLISH})


def test_a_list_gives_a_list_and_alternatives_come_if_asked_for(server):
    status, said = server.post("/translate", {**ASK, "q": [FRENCH, "", "Merci."], "alternatives": 2})
    assert status == 200 and said["translatedText"][:2] == [ENGLISH, ""]
    assert [len(some) for some in said["alternatives"]] == [2, 0, 2]
    status, said = server.post("/translate", {**ASK, "alternatives": "3", "source": "auto"})
    assert status == 200 and len(said["alternatives"]) == 3 and ENGLISH not in said["alternatives"]
    assert said["detectedLanguage"]["language"] == "fr" and 50 < said["detectedLanguage"]["confidence"] <= 100


def test_tags_are_carried_into_the_translation(server):
    page = f"<p>{FRENCH}</p><script>alert(1)</script><p>Le <b>chat</b> dort chez AT&amp;T.</p>"
    status, said = server.post("/translate", {**ASK, "q": page, "format": "html", "alternatives": 2})
    assert status == 200 and "alternatives" not in said
    assert said["translatedText"].startswith(f"<p>{ENGLISH}</p><script>alert(1)</script><p>The <b>cat</b> ")
    assert "AT&amp;T" in said["translatedText"] and said["translatedText"].endswith("</p>")
    asked = {
        "text": ["Le <b>chat</b> dort."],
        "source_lang": "FR",
        "target_lang": "EN",
        "tag_handling": "xml",
    }
    status, said = server.post("/v2/translate", asked)
    assert status == 200 and said["translations"][0]["text"] == "The <b>cat</b> is sleeping."
    assert server.post("/v2/translate", {**asked, "tag_handling": "tex"})[0] == 400
    status, said = server.post("/translate", {**ASK, "q": "Le <b>chat</b> dort."})  # as plain text
    assert status == 200 and said["translatedText"] != "The <b>cat</b> is sleeping."  # cached apart


WRONG = [
    ({}, 400, "q is missing"),
    ({"q": FRENCH}, 400, "target is missing"),
    ({**ASK, "q": 5}, 400, "must be a text"),
    ({**ASK, "q": ["a", None]}, 400, "must be a text"),
    ({**ASK, "q": {"a": 1}}, 400, "must be a text"),
    ({**ASK, "target": "xx"}, 400, "xx is not supported; this server has en, fr, ko"),
    ({**ASK, "target": "ko"}, 400, "no model from fr to ko"),
    ({**ASK, "source": "auto", "target": "ko"}, 400, "nothing is translated into ko"),
    ({**ASK, "source": 3}, 400, "source must be a text"),
    ({**ASK, "format": "tex"}, 400, "use text or html"),
    ({**ASK, "format": "pdf"}, 400, "'pdf' is not known"),
    ({**ASK, "alternatives": "x"}, 400, "whole number"),
    ({**ASK, "alternatives": 1e9}, 400, "whole number"),
    ({**ASK, "alternatives": 10**9}, 400, "from 0 to 10"),
    ({**ASK, "alternatives": -1}, 400, "from 0 to 10"),
    ({**ASK, "q": "a" * 5001}, 400, "5,001 characters; the limit is 5,000"),
    ({**ASK, "q": ["a"] * 129}, 400, "129 texts; at most 128"),
    ({**ASK, "q": "\ud800"}, 400, "surrogate"),
    ({**ASK, "q": "a\0b"}, 400, "NUL"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "message"), WRONG)
def test_what_is_wrong_gets_one_line(server, body, status, message):
    given, answer = server.post("/translate", body)
    assert given == status and list(answer) == ["error"] and message in answer["error"]
    assert "\n" not in answer["error"]


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"[" * 100_000, "application/json", 400),
        (b'{"q":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "application/json", 400),
        (b'{"q": NaN}', "application/json", 400),
        (b"[1]", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"&".join(b"a=1" for _ in range(250_000)), "application/x-www-form-urlencoded", 400),
        (b'{"q":"' + b"x" * 10_000_000 + b'"}', "application/json", 413),
        (b"%ff=1", "application/x-www-form-urlencoded", 400),
        (b"broken", "multipart/form-data; boundary=x", 400),
        (b"broken", "multipart/form-data", 400),
        (b"<a/>", "text/xml", 415),
    ],
)
def test_a_body_that_attacks_is_refused_fast_and_small(server, body, kind, status):
    began = time.monotonic()
    try:
        given, _, answer = server.ask("/translate", body, headers={"content-type": kind})
    except (BrokenPipeError, ConnectionResetError):
        assert status == 413  # refused before all of it was sent
    else:
        assert given == status and len(json.dumps(answer)) < 300
    assert time.monotonic() - began < 5


def test_every_code_point_gets_an_answer(server):
    for start in range(0, 0x110000, 0x11000):
        text = "".join(
            chr(code) for code in range(max(start, 1), start + 0x11000, 3989) if not 0xD800 <= code < 0xE000
        )
        status, said = server.post("/translate", {**ASK, "q": text})
        assert status == 200 and isinstance(said["translatedText"], str), hex(start)


def test_paths_and_methods_that_are_not_there(server):
    assert server.ask("/nothing")[0] == 404 and server.ask("/translate")[0] == 405


def test_languages_and_settings(server):
    _, _, languages = server.ask("/languages", headers={"content-type": "application/json"})
    assert {one["code"]: one["targets"] for one in languages} == {
        "en": ["en", "fr"],
        "fr": ["en", "fr"],
        "ko": ["en", "fr", "ko"],
    }
    settings = server.ask("/frontend/settings")[2]
    assert settings["charLimit"] == 5000 and settings["suggestions"] is True and not settings["keyRequired"]
    assert server.ask("/health")[2] == {"status": "ok"}


def test_a_text_goes_by_way_of_a_third_language_and_says_so(server):
    status, said = server.post(
        "/api/v1/translate", {"text": "나는 학생입니다.", "source": "ko", "target": "fr"}
    )
    (one,) = said["translations"]
    assert status == 200 and one["via"] == "en" and one["models"] == ["ko-en", "en-fr"]
    assert one["first"]["text"] == one["translation"]["source"] and one["text"] == one["translation"]["text"]
    directions = server.ask("/api/v1/languages")[2]["directions"]
    assert {"source": "ko", "target": "fr", "models": ["ko-en", "en-fr"], "via": "en"} in directions


def test_a_request_may_bring_its_glossary(server):
    body = {"text": "Je suis étudiant.", "model": "fr-en", "glossary": {"étudiant": "pupil"}}
    status, said = server.post("/api/v1/translate", body)
    assert status == 200 and "pupil" in said["translations"][0]["text"]
    assert said["translations"][0]["translation"]["terms"][0]["status"] == "used"
    status, said = server.post("/api/v1/translate", {**body, "glossary": {"étudiant": "learner"}})
    assert "learner" in said["translations"][0]["text"]  # not what was kept of the request before
    status, said = server.post("/api/v1/translate", {**body, "glossary": {"étudiant": ""}})
    assert status == 400 and "no translation" in said["error"]


def test_our_own_api_gives_what_the_library_gives(server):
    texts = [FRENCH, "IL FAIT BEAU AUJOURD'HUI.", "Il est parti. Elle est restée avec {0} amis.", ""]
    status, said = server.post("/api/v1/translate", {"text": texts, "model": "fr-en", "num_best": 2})
    wanted = [one.to_json() for one in regard.load("fr-en").translate(texts, num_best=2)]
    assert status == 200
    for one, other in zip(said["translations"], wanted, strict=True):
        given = one["translation"]
        for name in ("format", "source", "text", "flags", "uncovered", "links", "words"):
            assert given[name] == json.loads(json.dumps(other[name])), name
        assert given["confidence"] == pytest.approx(other["confidence"], rel=1e-2)
        assert [part["pieces"] for part in given["parts"]] == [part["pieces"] for part in other["parts"]]
        assert [some["text"] for some in given["alternatives"]] == [
            some["text"] for some in other["alternatives"]
        ]


def test_the_search_can_be_chosen_within_bounds(server):
    body = {"text": FRENCH, "model": "fr-en-rnn", "search": {"kind": "sample", "seed": 4, "temperature": 2.0}}
    status, said = server.post("/api/v1/translate", body)
    wanted = regard.load("fr-en-rnn").translate([FRENCH], kind="sample", seed=4, temperature=2.0)
    assert status == 200 and said["translations"][0]["text"] == wanted[0].text
    for search in ({"beam_size": 10**6}, {"max_ratio": 1e9}, {"kind": "walk"}, {"num_samples": "x"}, []):
        status, said = server.post("/api/v1/translate", {**body, "search": search})
        assert status == 400 and "search" in said["error"], search


@pytest.mark.parametrize(
    "body", [{}, {"text": 1, "target": "en"}, {"text": FRENCH}, {"text": FRENCH, "model": "no"}]
)
def test_our_own_api_says_what_is_wrong(server, body):
    status, said = server.post("/api/v1/translate", body)
    assert status in (400, 404) and list(said) == ["error"]


def test_a_trace_is_the_one_of_the_library_and_can_be_changed(server):
    status, said = server.post("/api/v1/trace", {"text": FRENCH, "model": "fr-en-rnn"})
    assert status == 200
    (trace,) = said["traces"]
    wanted = json.loads(Tracer.open("fr-en-rnn").trace(FRENCH).to_json())
    assert trace["target"] == wanted["target"] and trace["attentions"] == wanted["attentions"]
    weights = [1.0, *(0.0 for _ in trace["source"]["pieces"][1:])]
    change = [{"type": "look", "step": 2, "weights": weights}]
    status, said = server.post(
        "/api/v1/trace", {"text": FRENCH, "model": "fr-en-rnn", "interventions": change}
    )
    assert status == 200 and said["traces"][0]["target"] != trace["target"], said
    change[0]["weights"] = [0.5]
    status, said = server.post(
        "/api/v1/trace", {"text": FRENCH, "model": "fr-en-rnn", "interventions": change}
    )
    assert status == 400 and "give one for each" in said["error"]


def test_words_come_as_they_are_found(server):
    text = "Il pleut beaucoup. Je suis étudiant."
    status, headers, data = server.ask("/api/v1/stream", {"text": text, "model": "fr-en"})
    assert status == 200 and headers["content-type"].startswith("text/event-stream")
    events = [part.split("\n") for part in data.decode().strip().split("\n\n")]
    words = [json.loads(lines[1][6:]) for lines in events if lines[0] == "event: words"]
    assert [one["sentence"] for one in words] == sorted(one["sentence"] for one in words)
    assert len(words) > 6 and words[-1] == {"sentence": 1, "text": ENGLISH}
    assert events[-1][0] == "event: done"
    done = json.loads(events[-1][1][6:])
    assert done["text"] == regard.load("fr-en").translate([text], beam_size=1)[0].text
    assert server.post("/api/v1/stream", {"text": "a" * 9999, "model": "fr-en"})[0] == 400


def test_the_readers_of_browsers_are_answered(server):
    body = {"source_lang": "auto", "target_lang": "en", "text_list": [FRENCH, "Merci beaucoup."]}
    status, said = server.post("/immersive", body)
    assert status == 200 and said["translations"][0] == {"detected_source_lang": "fr", "text": ENGLISH}
    status, said = server.post("/kiss", {"text": FRENCH, "from": "fr", "to": "en"})
    assert status == 200 and said["text"] == ENGLISH and said["from"] == "fr"
    status, said = server.post("/kiss", {"texts": [FRENCH, FRENCH], "from": "", "to": "en"})
    assert status == 200 and [one["text"] for one in said["translations"]] == [ENGLISH] * 2
    assert server.post("/kiss", {"to": "en"})[0] == 400


def test_the_documents_of_the_api_work_offline(server):
    status, _, page = server.ask("/docs")
    text = page.decode()
    assert status == 200 and "/api/v1/translate" in text and "<script" not in text
    assert "http://" not in text and "https://" not in text
    document = server.ask("/openapi.json")[2]
    assert document["openapi"].startswith("3.") and "/translate" in document["paths"]


def test_security_headers_and_names_of_hosts(server):
    _, headers, _ = server.ask("/docs")
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff" and "server" not in headers
    assert "access-control-allow-origin" not in server.ask("/languages", headers={"origin": "https://a.b"})[1]
    assert server.ask("/languages", headers={"host": "evil.example"})[0] == 403
    assert server.ask("/languages", headers={"host": f"localhost:{server.port}"})[0] == 200


def test_metrics_and_the_log_hold_no_texts_and_no_addresses(server):
    server.post("/translate", {**ASK, "q": "Une phrase tout à fait secrète."})
    text = server.ask("/metrics")[2].decode()
    assert 'regard_requests_total{path="/translate",status="200"}' in text
    for secret in ("secrète", "secret", "127.0.0.1"):
        assert secret not in text
    assert "secr" not in server.log.read_text()
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    assert any({"path": "/translate", "status": 200}.items() <= line.items() for line in lines)


def test_a_suggestion_is_kept_once_and_exported(server, tmp_path):
    body = {"source": "fr", "target": "en", "q": "Bonjour <b> & co.", "s": "Hello\t<b> & co."}
    for _ in range(2):
        assert server.post("/suggest", body) == (200, {"success": True})
    assert server.post("/suggest", {**body, "source": "auto"})[0] == 400
    assert server.post("/suggest", {**body, "s": " "})[0] == 400
    assert server.post("/suggest", {**body, "source": "ko", "s": "x"})[0] == 200
    file = server.log.parent / "s.db"

    def export(name, *more):
        done = subprocess.run(
            [sys.executable, "-m", "regard", "suggestions", file, "--out", tmp_path / name, *more],
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr

    assert export("a.tsv")[0] == 2
    assert export("a.tsv", "--languages", "fr", "en")[0] == 0
    assert (tmp_path / "a.tsv").read_text() == "Bonjour <b> & co.\tHello <b> & co.\n"
    assert export("a.tmx") == (0, f"wrote {tmp_path / 'a.tmx'}: 2 pairs\n")
    from regard.corpus.read import open_corpus

    pairs = open_corpus([tmp_path / "a.tmx"], "fr", "en").pairs()
    assert [(pair.source, pair.target) for pair in pairs] == [("Bonjour <b> & co.", "Hello\t<b> & co.")]
    assert export("a.doc")[0] == 2
    pairs = open_corpus([file], "fr", "en").pairs()  # while the server goes on
    assert [(pair.source, pair.target) for pair in pairs] == [("Bonjour <b> & co.", "Hello\t<b> & co.")]


def test_a_short_text_is_recognised_with_little_confidence():
    codes = ["en", "fr", "ko"]
    assert detect("", codes) == [(code, 1 / 3) for code in codes]
    assert detect("12 + 3", codes)[0][1] == pytest.approx(1 / 3)
    long = detect("Je voudrais réserver une chambre pour deux personnes, s'il vous plaît.", codes)
    short = detect("chat", codes)
    assert long[0][0] == "fr" and long[0][1] > 0.99 > 0.8 > short[0][1]
    assert detect("학생입니다", codes)[0][0] == "ko" and detect("학생입니다", codes)[0][1] > 0.7
    for text in ("chat", "I am", "나"):
        assert sum(share for _, share in detect(text, codes)) == pytest.approx(1)


def test_when_a_client_leaves_its_work_ends(server):
    text = " ".join(f"Le chat numéro {n} dort dans la maison de mon voisin." for n in range(90))
    body = json.dumps({**ASK, "q": text[:5000]}).encode()
    head = f"POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as one:
        one.sendall(head.encode() + body)
        server.wait_for(lambda: server.metric("regard_waiting") > 0)
    began = time.monotonic()
    server.wait_for(lambda: server.metric("regard_waiting") == 0)
    assert time.monotonic() - began < 2
    server.wait_for(lambda: '"status": 499' in server.log.read_text())


def test_a_worker_that_dies_is_replaced_and_nobody_notices(server):
    (worker, *_) = children(server.process.pid)
    os.kill(worker, signal.SIGKILL)
    for n in range(6):
        status, said = server.post("/translate", {**ASK, "q": f"J'ai {n + 20} chats."})
        assert status == 200, said
    server.wait_for(lambda: worker not in children(server.process.pid) and server.ask("/readyz")[0] == 200)


def children(pid):
    """Return the translating processes of a server."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [one for one in map(int, found) if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


@pytest.mark.slow
def test_a_request_that_never_ends_is_closed(server):
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.port)) as one:
        one.sendall(b"POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nq")
        one.settimeout(30)
        assert one.recv(100) == b""
    assert 8 < time.monotonic() - began < 20


def test_keys_rates_and_the_queue(tmp_path):
    keys = tmp_path / "keys.tsv"
    made = subprocess.run(
        [sys.executable, "-m", "regard", "serve", "--keys", keys, "--add-key", "alice"],
        capture_output=True,
        text=True,
    )
    key = made.stdout.strip()
    assert made.returncode == 0 and len(key) > 40 and key not in keys.read_text()
    assert keys.stat().st_mode & 0o777 == 0o600
    with serving(
        tmp_path, "fr-en", "--keys", keys, "--rate", "300", "--max-waiting", "3", "--workers", "1"
    ) as server:
        assert server.post("/translate", ASK)[0] == 400
        assert server.post("/translate", {**ASK, "api_key": "wrong"}) == (
            403,
            {"error": "the API key is wrong"},
        )
        assert server.post("/translate", {**ASK, "api_key": key})[0] == 200
        assert server.post("/translate", ASK, authorization=f"Bearer {key}")[0] == 200
        assert server.ask("/languages")[0] == 200 and server.ask("/livez")[0] == 200
        assert server.ask("/v2/glossaries")[0] == 400 and server.ask("/download_file/a.txt")[0] == 404
        status, said = server.post("/translate", {**ASK, "q": ["a", "b", "c", "d"], "api_key": key})
        assert status == 503 and "too many texts" in said["error"]
        status, headers, _ = server.ask("/translate", {**ASK, "q": "a" * 290, "api_key": key})
        assert status == 429 and int(headers["retry-after"]) >= 1
        assert key not in server.log.read_text() and "alice" not in server.ask("/metrics")[2].decode()


def test_an_answered_suggestion_survives_kill_nine(tmp_path):
    file = tmp_path / "s.db"
    with serving(tmp_path, "fr-en", "--suggestions", file, "--workers", "1") as server:
        for n in range(20):
            assert server.post("/suggest", {"source": "fr", "target": "en", "q": f"a{n}", "s": "b"})[0] == 200
        server.process.kill()
        server.process.wait()
    with sqlite3.connect(file) as connection:
        assert connection.execute("select count(*) from suggestions").fetchone() == (20,)


def test_models_are_read_again_without_dropping_a_request_and_term_drains(tmp_path):
    model = tmp_path / "mine.regard"
    model.write_bytes(bundled("fr-en"))
    with serving(tmp_path, model, "--workers", "1", "--deadline", "60s") as server:
        answers = []

        def ask(n):
            answers.append(server.post("/translate", {**ASK, "q": f"J'ai vu {n} oiseaux dans le jardin."}))

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(12)]
        for n, thread in enumerate(threads):
            thread.start()
            if n == 4:
                model.write_bytes(bundled("fr-en-rnn"))
                server.process.send_signal(signal.SIGHUP)
            time.sleep(0.1)
        for thread in threads:
            thread.join()
        assert [status for status, _ in answers] == [200] * 12
        server.wait_for(lambda: "read again" in server.log.read_text())
        wanted = regard.load("fr-en-rnn").translate(["Le vin est bon ici."])[0].text
        assert server.post("/translate", {**ASK, "q": "Le vin est bon ici."})[1] == {"translatedText": wanted}
        model.write_bytes(b"damaged")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for(lambda: "not read again" in server.log.read_text())
        assert server.post("/translate", {**ASK, "q": "Le vin est bon."})[0] == 200
        long = threading.Thread(target=ask, args=(" ".join(map(str, range(300))),))
        long.start()
        server.wait_for(lambda: server.metric("regard_waiting") > 0)
        server.process.send_signal(signal.SIGTERM)
        long.join()
        assert answers[-1][0] == 200
        assert server.process.wait(30) in (0, 143)


def bundled(name):
    from regard.starter import bundled

    return bundled()[name].read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.regard"], "no.regard"),
        (["--port", "99999"], "--port 99999 is not valid"),
        (["--deadline", "x"], "--deadline x is not valid"),
        (["--max-texts", "0"], "--max-texts 0 is not valid"),
        (["--max-document", "0"], "--max-document 0 is not valid"),
        (["--allow-origin", "*"], "name the sites"),
        (["--keys", "none.tsv"], "none.tsv"),
        (["--add-key", "a"], "--add-key needs --keys"),
        (["fr-en", "--suggestions", "."], "cannot keep suggestions"),
        (["fr-en", "--glossaries", "."], "cannot keep glossaries"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, arguments, message):
    done = subprocess.run(
        [sys.executable, "-m", "regard", "serve", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
    )
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_port_that_is_taken_is_one_line(server, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "regard", "serve", "fr-en", "--port", str(server.port)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "choose another --port" in done.stderr and done.stderr.count("\n") == 1


def test_only_a_trusted_proxy_names_its_clients(tmp_path):
    """With the limit of a minute used up by one forwarded client, another one goes on; without a proxy both are one."""
    for proxy, status in ((["--proxy", "127.0.0.1"], 200), ([], 429)):
        with serving(tmp_path, "fr-en", "--rate", "40", "--workers", "1", *proxy) as server:
            text = "Il fait beau et chaud à Paris ce soir."
            assert server.post("/translate", {**ASK, "q": text}, **{"x-forwarded-for": "10.0.0.1"})[0] == 200
            assert server.post("/translate", {**ASK, "q": text}, **{"x-forwarded-for": "10.0.0.1"})[0] == 429
            assert (
                server.post("/translate", {**ASK, "q": text}, **{"x-forwarded-for": "10.0.0.2"})[0] == status
            )


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_both_event_loops_work_and_texts_are_logged_if_asked_for(tmp_path, loop):
    pytest.importorskip("uvloop")
    with serving(
        tmp_path, "fr-en", "--workers", "1", "--log-texts", without=[] if loop == "uvloop" else ["uvloop"]
    ) as server:
        assert server.post("/translate", ASK) == (200, {"translatedText": ENGLISH})
        assert server.ask("/translate", {**ASK, "q": "Oui."}, headers={"origin": "https://a.b"})[0] == 200
        server.wait_for(lambda: "I'm a student." in server.log.read_text())


def test_pages_of_a_site_that_is_named_may_call(tmp_path):
    with serving(tmp_path, "fr-en", "--workers", "1", "--allow-origin", "https://a.b") as server:
        for origin, allowed in (("https://a.b", "https://a.b"), ("https://c.d", None)):
            _, headers, _ = server.ask("/languages", headers={"origin": origin})
            assert headers["access-control-allow-origin"] == allowed
        asked = {
            "origin": "https://a.b",
            "access-control-request-method": "POST",
            "access-control-request-headers": "content-type",
        }
        assert server.ask("/translate", method="OPTIONS", headers=asked)[0] == 200


def test_without_the_packages_of_the_extra_it_says_what_to_install():
    code = "import sys; sys.modules['fastapi'] = None; from regard.cli import main; main(['serve'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2 and "pip install '.[serve]'" in done.stderr
