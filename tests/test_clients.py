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
    handle = client.translate_document_upload(FRENCH, filename="a.txt", target_lang="EN-US", source_lang="FR")
    assert client.translate_document_wait_until_done(handle).ok
    assert client.translate_document_download(handle).text == ENGLISH
    broken = client.translate_document_upload(b"[", filename="a.json", target_lang="EN-US")
    assert "no JSON" in client.translate_document_wait_until_done(broken).error_message
    with pytest.raises(deepl.DeepLException, match="not translated; known are"):
        client.translate_document_upload(b"MZ", filename="a.exe", target_lang="EN-US")


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
