"""The server, spoken to by the clients people have: each installed from its package."""

import shutil
import subprocess

import pytest
from serving import serving

pytest.importorskip("fastapi")

FRENCH = "Je suis étudiant."
ENGLISH = "I'm a student."


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server"), "fr-en", "en-fr", "--workers", "1") as one:
        yield one


def test_libretranslatepy(server):
    api = pytest.importorskip("libretranslatepy").LibreTranslateAPI(server.url)
    assert api.translate(FRENCH, "fr", "en") == ENGLISH
    assert [one["code"] for one in api.languages()] == ["en", "fr"]
    assert api.detect("Le chat dort sur la table.")[0]["language"] == "fr"


def test_deep_translator(server):
    libre = pytest.importorskip("deep_translator").LibreTranslator
    one = libre(source="fr", target="en", custom_url=f"{server.url}/", api_key="any")
    assert one.translate(FRENCH) == ENGLISH


def test_deepl(server):
    deepl = pytest.importorskip("deepl")
    client = deepl.DeepLClient("any", server_url=server.url)
    one = client.translate_text(FRENCH, target_lang="EN-GB")
    assert one.text == ENGLISH and one.detected_source_lang == "FR" and one.billed_characters == len(FRENCH)
    many = client.translate_text([FRENCH, "Merci."], source_lang="FR", target_lang="EN-US")
    assert many[0].text == ENGLISH and len(many) == 2
    assert client.get_usage().character.valid
    assert {one.code for one in client.get_source_languages()} == {"EN", "FR"}
    assert {one.code for one in client.get_target_languages()} == {"EN", "FR"}
    with pytest.raises(deepl.DeepLException, match="not supported"):
        client.translate_text("x", target_lang="DE")
    for formality in deepl.Formality.PREFER_MORE, "prefer_less", None:
        assert client.translate_text(FRENCH, target_lang="EN-GB", formality=formality).text == ENGLISH


def test_documents_of_deepl(server, tmp_path):
    deepl = pytest.importorskip("deepl")
    client = deepl.DeepLClient("any", server_url=server.url)
    letter, out = tmp_path / "lettre.html", tmp_path / "letter.html"
    letter.write_text(f"<p>{FRENCH}</p>", "utf-8")
    status = client.translate_document_from_filepath(letter, out, target_lang="EN-GB", source_lang="FR")
    assert status.done and status.billed_characters == len(FRENCH)
    assert out.read_text("utf-8") == f"<p>{ENGLISH}</p>"
    glossary = client.create_glossary("school", "FR", "EN-GB", {"étudiant": "pupil"})
    handle = client.translate_document_upload(
        FRENCH, filename="a.txt", target_lang="EN-US", source_lang="FR", glossary=glossary
    )
    assert client.translate_document_wait_until_done(handle).ok
    assert "pupil" in client.translate_document_download(handle).text
    broken = client.translate_document_upload(b"[", filename="a.json", target_lang="EN-US")
    assert "no JSON" in client.translate_document_wait_until_done(broken).error_message
    with pytest.raises(deepl.DeepLException, match="not translated; known are"):
        client.translate_document_upload(b"MZ", filename="a.exe", target_lang="EN-US")


def test_glossaries_of_deepl(server):
    deepl = pytest.importorskip("deepl")
    client = deepl.DeepLClient("any", server_url=server.url)
    pairs = {(one.source_lang, one.target_lang) for one in client.get_glossary_languages()}
    assert pairs == {("fr", "en"), ("en", "fr")}
    entries = {"étudiant": "pupil", "chat": "tomcat"}
    one = client.create_glossary("school", "FR", "EN-GB", entries)
    assert one.ready and one.entry_count == 2 and client.get_glossary_entries(one) == entries
    assert client.get_glossary(one.glossary_id).name == "school"
    assert one.glossary_id in [some.glossary_id for some in client.list_glossaries()]
    said = client.translate_text(FRENCH, source_lang="FR", target_lang="EN-GB", glossary=one)
    assert "pupil" in said.text
    other = client.create_glossary_from_csv("csv", "FR", "EN", "étudiant,learner\n")
    said = client.translate_text(FRENCH, source_lang="FR", target_lang="EN-GB", glossary_ids=[other, one])
    assert "learner" in said.text
    for some in one, other:
        client.delete_glossary(some)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_glossary(one.glossary_id)


def test_glossaries_of_deepl_for_several_languages(server):
    deepl = pytest.importorskip("deepl")
    client = deepl.DeepLClient("any", server_url=server.url)
    dictionary = deepl.api_data.MultilingualGlossaryDictionaryEntries
    one = client.create_multilingual_glossary(
        "school", [dictionary("FR", "EN", {"étudiant": "pupil"}), dictionary("EN", "FR", {"pupil": "élève"})]
    )
    assert [some.entry_count for some in one.dictionaries] == [1, 1]
    one = client.update_multilingual_glossary_dictionary(one, dictionary("FR", "EN", {"chat": "tomcat"}))
    assert {(some.source_lang, some.entry_count) for some in one.dictionaries} == {("EN", 1), ("FR", 2)}
    assert client.update_multilingual_glossary_name(one, "lycée").name == "lycée"
    (found,) = client.get_multilingual_glossary_entries(one, "FR", "EN").dictionaries
    assert found.entries == "étudiant\tpupil\nchat\ttomcat"
    said = client.translate_text(FRENCH, source_lang="FR", target_lang="EN-GB", glossary=one)
    assert "pupil" in said.text
    replaced = client.replace_multilingual_glossary_dictionary(
        one, dictionary("FR", "EN", {"étudiant": "learner"})
    )
    assert replaced.entry_count == 1
    said = client.translate_text(FRENCH, source_lang="FR", target_lang="EN-GB", glossary=one)
    assert "learner" in said.text
    client.delete_multilingual_glossary_dictionary(one, replaced)
    assert len(client.get_multilingual_glossary(one.glossary_id).dictionaries) == 1
    named = {some.glossary_id: some.name for some in client.list_multilingual_glossaries()}
    assert named[one.glossary_id] == "lycée"
    client.delete_multilingual_glossary(one)
    assert one.glossary_id not in [some.glossary_id for some in client.list_multilingual_glossaries()]


def test_openai(server):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
    messages = [{"role": "system", "content": "Translate."}, {"role": "user", "content": FRENCH}]
    done = client.chat.completions.create(model="fr-en", messages=messages)
    assert done.choices[0].message.content == ENGLISH and done.usage.total_tokens > 0
    parts = client.chat.completions.create(model="fr-en", messages=messages, stream=True)
    assert "".join(part.choices[0].delta.content or "" for part in parts) == ENGLISH
    assert {one.id for one in client.models.list()} == {"fr-en", "en-fr"}
    with pytest.raises(openai.NotFoundError, match="no model"):
        client.chat.completions.create(model="de-nl", messages=messages)
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="fr-en", messages=[])
    client.close()


SCRIPTS = {
    "libretranslate": """
        const { translate } = require("libretranslate");
        translate({ query: TEXT, source: "fr", target: "en", apiurl: URL }).then(console.log);
    """,
    "libretranslate-ts": """
        const { libreTranslate } = require("libretranslate-ts");
        libreTranslate.setApiEndpoint(URL);
        libreTranslate.setApiKey("any");
        libreTranslate.translate(TEXT, "fr", "en").then((one) => console.log(one.translatedText));
    """,
    "translate": """
        import(require.resolve("translate")).then(async ({ Translate }) => {
            const translate = Translate({ engine: "libre", url: URL + "/translate", key: "any" });
            console.log(await translate(TEXT, { from: "fr", to: "en" }));
        });
    """,
}


@pytest.mark.parametrize("package", SCRIPTS)
def test_packages_of_node(server, package, tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    if subprocess.run([node, "-e", f"require.resolve('{package}')"], capture_output=True).returncode:
        pytest.skip(f"the npm package {package} is not in NODE_PATH")
    script = SCRIPTS[package].replace("URL", repr(server.url)).replace("TEXT", repr(FRENCH))
    done = subprocess.run([node, "-e", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == ENGLISH, done.stderr
