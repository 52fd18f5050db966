"""Documents and glossaries on the server: what clients send, fetch and keep, and its limits."""

import asyncio
import io
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from serving import serving

pytest.importorskip("fastapi")

from regard.errors import DocumentError
from regard.server.document_process import DocumentProcess, DocumentTask
from regard.server.errors import ApiError
from regard.server.glossaries import Glossaries
from regard.server.service import Asked, Caller, Service
from regard.server.settings import ServerOptions
from regard.starter import bundled

FRENCH = "Je suis étudiant."
ENGLISH = "I'm a student."
PAGE = f"<p>{FRENCH}</p><script>alert(1)</script><p>Le <b>chat</b> dort.</p>".encode()
TRANSLATED = f"<p>{ENGLISH}</p><script>alert(1)</script><p>The <b>cat</b> is sleeping.</p>".encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with serving(
        folder, "fr-en", "en-fr", "--workers", "1", "--glossaries", folder / "g.db", "--max-document", 100_000
    ) as one:
        yield one


def form(data, name, **fields):
    """Return a form with a file, as curl sends it, and its headers."""
    parts = [
        f'--x\r\ncontent-disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
        for key, value in fields.items()
    ]
    head = f'--x\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return "".join([*parts, head]).encode() + data + b"\r\n--x--\r\n", {
        "content-type": "multipart/form-data; boundary=x"
    }


def send(server, data, name, path="/translate_file", **fields):
    body, headers = form(data, name, **(fields or {"source": "fr", "target": "en"}))
    return server.post(path, body, **headers)


def test_libretranslate_answers_a_document_with_its_address(server):
    status, said = send(server, PAGE, "../../etc/page.HTML", source="auto", target="en")
    assert status == 200 and said["translatedFileUrl"].startswith(f"{server.url}/download_file/")
    path = said["translatedFileUrl"].removeprefix(server.url)
    assert path.endswith(".html") and "etc" not in path and "page" not in path and len(path) > 40
    status, headers, data = server.ask(path)
    assert status == 200 and data == TRANSLATED
    assert headers["content-type"] == "application/octet-stream"  # no browser runs its script
    assert headers["content-disposition"] == 'attachment; filename="translation.html"'
    settings = server.ask("/frontend/settings")[2]
    assert settings["filesTranslation"] and ".docx" in settings["supportedFilesFormat"]
    assert "étudiant" not in server.log.read_text()


def bomb():
    """Return an archive that is small and expands to 40 MiB."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", bytes(40 << 20))
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "name", "fields", "status", "message"),
    [
        (PAGE, "a.exe", {}, 400, "not translated; known are"),
        (PAGE, "a.html", {"source": "fr"}, 400, "target is missing"),
        (PAGE, "a.html", {"source": "fr", "target": "xx"}, 400, "xx is not supported"),
        (b"<tmx/>", "a.tmx", {"source": "auto", "target": "en"}, 400, "name the one"),
        (b"\xff\xfe\xfd", "a.txt", {}, 400, "the document"),
        (b"[" * 100_000, "a.json", {}, 400, "the document is no JSON"),
        (b'{"a": "abc \\ud800"}', "a.json", {}, 400, "surrogate"),
        (b"not an archive", "a.docx", {}, 400, "the document is damaged"),
        (b"Un chat dort.\n\n" * 10_000, "a.txt", {}, 400, "more than 100,000 characters"),
        (b"x" * (1 << 20), "a.txt", {}, 413, "bytes"),
    ],
)
def test_what_is_no_document_gets_one_line(server, data, name, fields, status, message):
    given, said = send(server, data, name, **fields)
    assert given == status and message in said["error"] and "\n" not in said["error"]


def test_an_archive_that_expands_too_much_is_refused(server):
    status, said = send(server, bomb(), "a.docx")
    assert status == 400 and "expands to" in said["error"]


def test_names_that_nobody_was_given_lead_nowhere(server):
    for path in ("/download_file/x.txt", "/download_file/..%2f..%2fetc%2fpasswd", "/download_file/.html"):
        assert server.ask(path)[0] == 404
    status, said = send(server, b"Oui.", "a.txt", "/v2/document", target_lang="EN", source_lang="FR")
    assert status == 200
    for id, key in ((said["document_id"], "x"), (said["document_id"], "\ud800"), ("x", said["document_key"])):
        assert server.post(f"/v2/document/{id}", {"document_key": key})[0] == 404
    assert server.post(f"/v2/document/{said['document_id']}/result", {})[0] == 400


def test_a_request_without_a_file_says_how_to_send_one(server):
    for path in ("/translate_file", "/v2/document"):
        status, said = server.post(path, {"file": "text", "source": "fr", "target": "en"})
        assert status == 400 and "curl -F file=@" in next(iter(said.values()))


BOOK = "\n\n".join(
    f"Le rapport numéro {n} a été adopté par le Parlement européen hier soir." for n in range(2000)
)


ASKED = Asked("en", "fr")


@pytest.fixture(scope="module")
def run():
    """Run some work with a service of one model, in an event loop."""
    options = ServerOptions(num_workers=1, rate=len(BOOK), document_seconds=60)
    service = Service({"fr-en": bundled()["fr-en"]}, options)
    with asyncio.Runner() as runner:
        yield lambda work: runner.run(work(service))
    service.close()


def begin(service, text, client, name="a.txt"):
    return service.documents.begin(text.encode(), name, ASKED, Caller(client))


def test_a_long_document_lets_a_sentence_of_somebody_else_pass(run):
    async def work(service):
        book = begin(service, BOOK, "reader")
        while not service.desk.num_waiting:
            await asyncio.sleep(0.01)
        times = []
        for n in range(5):
            assert service.why_not_ready() is None  # the queue has room for others
            began = time.monotonic()
            await service.translate([f"J'ai {n} chats."], ASKED, Caller("other"))
            times.append(time.monotonic() - began)
        assert book.state == "translating" and sorted(times)[2] < 2
        began = time.monotonic()
        waiting = asyncio.create_task(service.documents.translated(book))
        await asyncio.sleep(0)
        waiting.cancel()  # as when the client goes away
        while service.desk.num_waiting:
            await asyncio.sleep(0.01)
        assert time.monotonic() - began < 2 and book.error == "it was stopped"
        with pytest.raises(ApiError, match="there is no such document"):
            service.documents.find(book.name)

    run(work)


def test_a_document_too_late_or_beyond_the_rate_is_given_up(run):
    async def work(service):
        service.options = replace(before := service.options, deadline=0.5)
        late = begin(service, FRENCH * 500, "late")
        with pytest.raises(ApiError, match=r"not done within 0\.5 s"):
            await service.documents.translated(late)
        assert late.error == "it was stopped"
        service.options = before
        with pytest.raises(ApiError, match="characters a minute"):
            await service.documents.translated(begin(service, BOOK, "reader"))

    run(work)


def test_documents_are_few_and_gone_after_a_time(run):
    async def work(service):
        one = begin(service, FRENCH, "a")
        assert await one.task == ENGLISH.encode()
        kept = [begin(service, BOOK, "a") for _ in range(8)]
        with pytest.raises(ApiError, match="there is no such document"):
            service.documents.find(one.name)  # the oldest made room
        with pytest.raises(ApiError, match="8 documents of yours are not done"):
            begin(service, "Oui.", "a")
        other = begin(service, FRENCH, "b")
        assert await other.task == ENGLISH.encode()  # it does not wait for those of a
        kept += [other, *(begin(service, "Oui.", f"c{number // 8}") for number in range(55))]
        with pytest.raises(ApiError, match="too many documents"):
            begin(service, "Oui.", "d")
        service.options = replace(service.options, document_seconds=0.1)
        for document in kept:
            service.documents.find(document.name)  # from now on
        while service.documents.num_kept:
            await asyncio.sleep(0.05)
        await asyncio.wait({one.task for one in kept})
        assert other.state == "done" and {one.state for one in kept} <= {"done", "error"}

    run(work)


@pytest.mark.parametrize(
    ("data", "ending", "message"),
    [
        (b"[" * (1 << 20), ".md", "too much time or memory"),  # reading it takes 20 s
        (b"<i>" * (3 << 20), ".html", "too much"),
        (b"a" * 2000, ".txt", "would have 2,000 bytes"),
    ],
)
def test_a_hostile_document_costs_its_own_process_and_no_more(data, ending, message):
    async def work():
        with ThreadPoolExecutor(1) as threads, DocumentProcess(threads) as process:
            answer = await process.ask(DocumentTask(data, ending, "fr", "en", 10**6, 1000, seconds=1))
            await process.ask([text for text, _ in answer])

    with pytest.raises(DocumentError, match=message):
        asyncio.run(work())


GLOSSARY = {"name": "school", "source_lang": "FR", "target_lang": "EN", "entries": "étudiant\tpupil"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"entries": ""}, "needs entries"),
        ({"entries": "étudiant"}, "entry 1: write a source and a target"),
        ({"entries": "a\tb\tc"}, "entry 1"),
        ({"entries": "a\tb\na\tc"}, "two translations"),
        ({"entries": "a\t"}, "no translation"),
        ({"entries": "\ud800\tb"}, "surrogate"),
        ({"entries": "a\t" + "b" * 201}, "200 characters"),
        ({"entries": "\n".join(f"a{n}\tb" for n in range(10_001))}, "may have 10,000"),
        ({"entries": 'a,"b', "entries_format": "csv"}, "not CSV"),
        ({"entries_format": "xml"}, "entries_format"),
        ({"name": " "}, "needs a name"),
        ({"target_lang": "DE"}, "not supported"),
        ({"target_lang": "FR"}, "one model"),
    ],
)
def test_a_glossary_that_is_wrong_is_refused(server, change, message):
    status, said = server.post("/v2/glossaries", {**GLOSSARY, **change})
    assert status == 400 and message in said["message"] and "\n" not in said["message"]


def test_a_glossary_is_named_in_a_request(server):
    status, made = server.post(
        "/v2/glossaries", {**GLOSSARY, "entries": 'étudiant,pupil\n"chat",cat,FR,EN', "entries_format": "csv"}
    )
    assert status == 201 and made["entry_count"] == 2
    body = {"text": [FRENCH], "source_lang": "FR", "target_lang": "EN", "glossary_id": made["glossary_id"]}
    status, said = server.post("/v2/translate", body)
    assert status == 200 and "pupil" in said["translations"][0]["text"]
    for change, status, message in (
        ({"source_lang": ""}, 400, "source_lang"),
        ({"glossary_id": "no"}, 404, "no such glossary"),
        ({"glossary_id": "\ud800"}, 400, "surrogate"),
        ({"glossary_id": 5}, 400, "list"),
        ({"glossary_ids": ["a"] * 6}, 400, "at most 5"),
        ({"source_lang": "EN", "target_lang": "FR"}, 404, "no entries from EN to FR"),
    ):
        given, said = server.post("/v2/translate", {**body, **change})
        assert given == status and message in said["message"], change
    assert server.ask(f"/v2/glossaries/{made['glossary_id']}", method="DELETE")[0] == 204
    assert server.post("/v2/translate", body)[0] == 404


def test_glossaries_belong_to_their_owner_stay_in_the_file_and_are_few(tmp_path):
    pair = ("fr", "en")
    store = Glossaries(tmp_path / "g.db")
    one = store.create("alice", "school", {pair: {"étudiant": "pupil"}})
    assert store.all_of("alice") == [one] and store.all_of("bob") == []
    for work in (
        store.find,
        store.delete,
        lambda *who: store.terms(*who, pair),
        lambda *who: store.built(*who[:1], [who[1]], pair),
    ):
        with pytest.raises(ApiError, match="no such glossary"):
            work("bob", one.id)
    built = store.built("alice", [one.id], pair)
    assert store.built("alice", [one.id], pair) is built
    store.change("alice", one.id, None, {pair: {"chat": "cat"}}, merges=True)
    assert len(store.built("alice", [one.id], pair).entries) == 2
    store.close()
    again = Glossaries(tmp_path / "g.db")
    assert again.terms("alice", one.id, pair) == {"étudiant": "pupil", "chat": "cat"}
    for _ in range(99):
        again.create("alice", "a", {pair: {"a": "b"}})
    with pytest.raises(ApiError, match="at most 100"):
        again.create("alice", "a", {pair: {"a": "b"}})
    again.close()
