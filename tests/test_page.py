"""The live page, as a reader meets it: a real server, bundled models, a real browser."""

import csv
import functools
import io
import json
import os
import re
import shutil
import struct
import threading
import time
import urllib.error
import urllib.request
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import as_file, files
from pathlib import Path
from urllib.parse import parse_qsl, quote
from xml.etree import ElementTree

import numpy as np
import pytest
from serving import serving

import regard
from regard.cli import run
from regard.errors import ConfigError
from regard.loaded import Loaded
from regard.starter import bundled
from regard.trace.document import HeadOff, LookSo, MaskOff, PositionsOff
from regard.trace.live import LivePage
from regard.trace.make import Tracer
from regard.trace.views import load_trace
from regard.viewer.lessons import read_lessons
from regard.viewer.page import served_page

sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright to drive a browser with")
pytest.importorskip("uvicorn", reason="no server: the extra [serve] is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")

TEXT = "L'accord sur la zone économique européenne a été signé en août 1992."
MODELS = ("fr-en-rnn", "fr-en-fixed", "fr-en-luong", "fr-en")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("page"), *MODELS, "--quiet", "--workers", "1") as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def one_file(tmp_path_factory):
    """The page as one file with models and an engine in it."""
    path = tmp_path_factory.mktemp("file") / "translator.html"
    assert run(["page", *MODELS, "--out", str(path)]) == 0
    return path


on = functools.partial(pytest.mark.parametrize, indirect=["open_page"])
on_both = on("open_page", ["server", "file"])


@pytest.fixture
def open_page(browser, server, request):
    """Opens the page of the server or, offline, that in one file.

    At the end no other machine may have been asked, and nothing gone wrong.
    """
    contexts, wrong = [], []
    offline = getattr(request, "param", "server") == "file"
    home = request.getfixturevalue("one_file").as_uri() if offline else f"{server.url}/"

    def open_page(address="", width=1280, allowed=(), **more):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, offline=offline, **{"locale": "en-US", **more}
        )
        contexts.append(context)
        shown = context.new_page()

        def note(what):
            if not any(one in what for one in allowed):
                wrong.append(what)

        shown.on(
            "request",
            lambda asked: asked.url.startswith((home, "data:", "blob:")) or note(asked.url),
        )
        shown.on(
            "console", lambda message: note(message.text) if message.type in ("error", "warning") else None
        )
        shown.on("pageerror", lambda error: note(str(error)))
        shown.goto(f"{home}#{address}")
        shown.wait_for_selector("body.ready")
        settled(shown)
        return shown

    open_page.raw = offline  # the engine in the page shows the plain search
    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture(scope="module")
def tracers():
    return {name: Tracer(Loaded.open(name)) for name in MODELS}


def settled(shown):
    """Nothing is being asked any more."""
    shown.wait_for_selector('.asking .go[aria-busy="false"]')
    shown.wait_for_selector(".viewer:not(.beside) .target .chip")


def link(model="fr-en-rnn", text=TEXT, **more):
    return "&".join(f"{key}={quote(str(value))}" for key, value in {"m": model, "s": text, **more}.items())


def said(shown, slot=".viewer:not(.beside)"):
    return shown.eval_on_selector_all(
        f"{slot} .target .chip .text", "all => all.map(one => one.textContent).filter(one => one !== '</s>')"
    )


def words_of(trace):
    return [trace.target.text[word.start : word.end] for word in trace.target.words]


def chip(shown, side, word):
    return shown.locator(f".viewer:not(.beside) .{side} .chip", has=shown.get_by_text(word, exact=True)).first


def drag(shown, word, to):
    start, end = (chip(shown, *one).bounding_box() for one in (("target", word), ("source", to)))
    shown.mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
    shown.mouse.down()
    shown.mouse.move(end["x"], end["y"] + 70, steps=4)
    shown.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=4)
    shown.mouse.up()


def touch(shown, word, to):
    """Drag with a finger: events of the touch screen, from which the browser makes all others."""
    (x, y), (to_x, to_y) = (
        (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        for box in (chip(shown, *one).bounding_box() for one in (("target", word), ("source", to)))
    )
    screen = shown.context.new_cdp_session(shown)

    def send(kind, *points):
        screen.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    send("touchStart", {"x": x, "y": y})
    for part in (0.25, 0.5, 0.75, 1.0):
        send("touchMove", {"x": x + part * (to_x - x), "y": y + part * (to_y - y)})
    send("touchEnd")


def wait_for_change(shown):
    shown.wait_for_selector(".changes .now")
    settled(shown)


def changes_in(shown):
    """The changes of the address: what the page has sent."""
    written = re.compile(r"[#&]iv=([^&]*)")  # a few times a second at most
    sync_api.expect(shown).to_have_url(written)
    found = written.search(shown.url)
    return json.loads(shown.evaluate("text => decodeURIComponent(text.replaceAll('+', ' '))", found[1]))


def test_it_opens_on_the_sentence_of_the_paper_with_one_hint(open_page):
    shown = open_page()
    assert shown.input_value(".asking textarea") == TEXT
    assert shown.locator(".first-hint").count() == 1
    assert " ".join(said(shown)).startswith("The agreement on the European economic area")
    # "zone économique européenne" is framed in the map: it comes out in reverse.
    framed = shown.locator(".grid td:has(.reversed)")
    assert framed.get_attribute("aria-label").startswith("European ← zone")
    assert re.search(r"Answered in \d[\d.]* m?s", shown.inner_text(".facts").replace("\n", " "))


SENTENCES = [
    "Bonjour, comment ça va ?",
    "IL PLEUT À PARIS",
    "Voir https://exemple.fr/a?b=1 et 1 234,5 km.",
    "Oui. Non. Peut-être.",
    "Le chat dort.",
    "Écrivez à moi@exemple.org avant le 12/03/2024.",
    "« Où est la gare ? » demanda-t-il.",
    "J'ai 3 chats, 2 chiens et 1 000 poissons.",
    "NE PAS TOUCHER !",
    "Madame la Présidente, je voudrais remercier le rapporteur.",
    "aujourd'hui",
    "Cliquez sur {bouton} ou tapez %s.",
    "Il fait beau 😀",
    "Ouvrez le fichier C:\\temp\\a.txt.",
    "Tom et Mary sont allés à Boston le 4 juillet 1999.",
    "La réunion aura lieu à 14h30, salle 12.",
    "L'union fait la force ; la nuit porte conseil.",
    "Que pensez-vous de cette proposition, chers collègues ?",
    "Le prix est de 12,50 € (TVA comprise).",
    "La Commission a présenté une proposition qui, si elle est adoptée par le Conseil et le Parlement, "
    "permettra aux États membres de mieux protéger les consommateurs, les travailleurs et l'environnement.",
]


@on_both
def test_what_is_shown_is_what_python_says(open_page, tracers):
    """The translation with its guard; of a page without a server, the plain one."""
    translator = regard.load("fr-en")
    shown = open_page(link("fr-en", SENTENCES[0], open=""))
    for text in SENTENCES:
        if text != SENTENCES[0]:
            shown.fill(".asking textarea", text)
            shown.keyboard.press("Enter")
            settled(shown)
        words = []
        buttons = shown.locator(".parts button")
        for part in range(buttons.count() or 1):
            if part:
                buttons.nth(part).click()
                settled(shown)
            words += said(shown)
        if open_page.raw:
            expected = tracers["fr-en"].trace(text, raw=True).target.text
        else:
            expected = translator.translate([text])[0].text
        assert "".join(words) == re.sub(r"\s", "", expected), text


@on_both
def test_nothing_else_may_be_asked(open_page):
    shown = open_page(
        allowed=["Content Security Policy", "Refused to connect", "Failed to fetch", "violates"]
    )
    refused = shown.evaluate("() => fetch('http://127.0.0.1:9/x').then(() => false, () => true)")
    assert refused
    shown.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.ran = true";
          document.head.append(script);
        }"""
    )
    assert shown.evaluate("window.ran === undefined")


def test_the_server_gives_no_file_that_is_no_part_of_the_page(server):
    status, headers, _ = server.ask("/static/../page.py")
    assert status == 404 and "script-src" not in headers["content-security-policy"]


@on_both
def test_a_drag_moves_the_gaze_and_python_says_the_same(open_page, tracers):
    shown = open_page(link())
    before = said(shown)
    drag(shown, "European", "économique")
    wait_for_change(shown)
    (change,) = changes_in(shown)
    assert sum(change["weights"]) == pytest.approx(1, abs=1e-4)
    forced = LookSo(
        step=change["step"], weights=change["weights"], layer=change["layer"], head=change["head"]
    )
    expected = words_of(tracers["fr-en-rnn"].trace(TEXT, interventions=[forced]))
    assert said(shown) == expected != before
    assert shown.locator(".versions .now mark").count() > 0
    # A fresh browser shows the same from the address alone.
    again = open_page(shown.url.partition("#")[2])
    wait_for_change(again)
    assert said(again) == expected
    shown.locator(".undo").click()
    shown.wait_for_selector(".changes .now", state="detached")
    settled(shown)
    assert said(shown) == before


@on_both
def test_keys_move_a_weight(open_page, tracers):
    shown = open_page(link())
    chip(shown, "target", "European").click()
    word = chip(shown, "source", "économique")
    word.focus()
    before = int(word.get_attribute("aria-valuenow"))
    shown.keyboard.press("ArrowUp")
    wait_for_change(shown)
    now = chip(shown, "source", "économique")
    assert int(now.get_attribute("aria-valuenow")) == pytest.approx(before + 5, abs=1)
    assert now.evaluate("one => one === document.activeElement")
    shown.keyboard.press("1")
    shown.wait_for_function("() => document.querySelector('.source [aria-valuenow=\"100\"]')")
    settled(shown)
    (change,) = changes_in(shown)
    forced = LookSo(
        step=change["step"], weights=change["weights"], layer=change["layer"], head=change["head"]
    )
    assert said(shown) == words_of(tracers["fr-en-rnn"].trace(TEXT, interventions=[forced]))


@on_both
def test_a_word_can_be_edited_and_the_decoder_goes_on(open_page, tracers):
    shown = open_page(link())
    chip(shown, "target", "European").dblclick()
    shown.locator(".editor input").fill("new")
    shown.keyboard.press("Enter")
    wait_for_change(shown)
    assert said(shown)[:5] == ["The", "agreement", "on", "the", "new"]
    assert said(shown) == words_of(tracers["fr-en-rnn"].trace(TEXT, prefix="The agreement on the new"))
    shown.reload()
    shown.wait_for_selector("body.ready")
    wait_for_change(shown)
    assert said(shown)[4] == "new"
    shown.locator(".change button").first.click()  # left out for a while
    shown.wait_for_selector(".change.off")
    settled(shown)
    assert said(shown)[4] == "European"


def test_a_reload_loses_nothing_even_before_the_answer(open_page):
    shown = open_page(link())
    chip(shown, "target", "European").dblclick()
    shown.locator(".editor input").fill("new")
    shown.route("**/api/v1/trace", lambda _: None)  # this answer never comes
    shown.keyboard.press("Enter")
    shown.wait_for_selector('.asking .go[aria-busy="true"]')
    asked = shown.url
    assert [change["text"] for change in changes_in(shown)] == ["The agreement on the new"]
    shown.reload(wait_until="commit")
    shown.wait_for_selector(".asking textarea")
    assert shown.url == asked  # nor does loading change it
    shown.unroute("**/api/v1/trace")
    shown.reload()
    shown.wait_for_selector("body.ready")
    wait_for_change(shown)
    assert said(shown)[4] == "new"


def test_a_change_is_undone_by_key(open_page):
    shown = open_page(link())
    first = said(shown)
    drag(shown, "European", "économique")
    wait_for_change(shown)
    assert said(shown) != first
    shown.keyboard.press("Control+z")
    shown.wait_for_selector(".changes .now", state="detached")
    settled(shown)
    assert said(shown) == first


def test_what_the_picture_lacks_is_said(open_page):
    shown = open_page(link("fr-en-fixed"))
    (whole,) = regard.load("fr-en-fixed").translate([TEXT])
    assert "around" in whole.flags and whole.text in shown.inner_text(".around")
    shown = open_page(link(text="Bonjour. " * 100))
    assert "600" in shown.inner_text(".too-long")


@pytest.mark.parametrize("changes", ["[x", '[{"type":"zzz"}]', "5", "[null]"])
def test_a_link_that_is_damaged_shows_the_rest_and_says_so(open_page, changes):
    shown = open_page(link(iv=changes))
    assert "link" in shown.inner_text(".asked .error")
    assert " ".join(said(shown)).startswith("The agreement")


def test_a_task_is_done_by_the_right_word_and_no_other(open_page, tracers):
    weights = tracers["fr-en-rnn"].traces("Je suis étudiant.")[0].heat_map(by="words").values_TS
    shown = open_page("lesson=3")
    for word in ("I'm", "a", "student"):
        current = shown.locator(".viewer:not(.beside) .target .chip[aria-current]")
        assert current.locator(".text").inner_text() == word
        assert shown.locator(".task.done").count() == (word == "student")
        shown.keyboard.press("]")
    assert int(np.argmax(weights[:, 2])) == 2  # no word looks more at it


@on_both
def test_a_given_translation_is_read_word_by_word(open_page, tracers):
    given = "The European economic agreement was signed."
    shown = open_page(link())
    shown.locator(".give").click()
    shown.locator(".giving textarea").fill(given)
    shown.locator(".giving .go").click()
    wait_for_change(shown)
    trace = tracers["fr-en-rnn"].trace(TEXT, force=given)
    assert said(shown) == words_of(trace) and " ".join(said(shown)[:4]) == "The European economic agreement"
    percent = round(100 * np.exp(trace.target.pieces[0].log_prob))
    assert shown.inner_text(".viewer:not(.beside) .target .chip:first-child small") == f"{percent}\xa0%"
    shown.locator(".undo").click()
    shown.wait_for_selector(".changes .now", state="detached")


@on_both
def test_without_attention_beside_it_one_transport_moves_both(open_page, tracers):
    shown = open_page(link())
    shown.locator("button.compare").click()
    shown.wait_for_selector(".beside .bottleneck canvas")
    settled(shown)
    assert said(shown, ".beside") == words_of(tracers["fr-en-fixed"].trace(TEXT, raw=open_page.raw))
    assert shown.locator(".both .without mark").count() > 0
    for _ in range(3):
        shown.keyboard.press("]")
    for slot in (".viewer:not(.beside)", ".beside"):
        assert shown.get_attribute(f"{slot} .target .current", "data-place") == "3"
    assert shown.locator(".beside .transport").is_hidden()


@on(
    ("open_page", "button", "change"),
    [
        ("server", "off-positions_off", PositionsOff()),
        ("file", "off-mask_off", MaskOff()),
        ("file", "off-head_off", None),
    ],
)
def test_what_is_switched_off_is_off_in_python_too(open_page, tracers, button, change):
    shown = open_page(link("fr-en", open="heads"))
    shown.locator(f".{button}").click()
    wait_for_change(shown)
    if change is None:
        (sent,) = changes_in(shown)
        change = HeadOff(kind=sent["kind"], layer=sent["layer"], head=sent["head"])
    expected = tracers["fr-en"].trace(TEXT, interventions=[change])
    assert said(shown) == words_of(expected)
    assert shown.locator(f".{button}").get_attribute("aria-pressed") == "true"


@on_both
def test_the_beam_goes_on_from_a_hypothesis_that_was_dropped(open_page, tracers):
    shown = open_page(link(open="beam"))
    node = shown.locator(".tree .node.dropped").first
    label = node.get_attribute("aria-label").split(",")[0]
    node.focus()
    shown.keyboard.press("Enter")
    wait_for_change(shown)
    prefix = changes_in(shown)[0]["text"]
    assert prefix.endswith(label.strip("▁"))
    assert " ".join(said(shown)).startswith(prefix.split("'")[0])
    assert said(shown) == words_of(tracers["fr-en-rnn"].trace(TEXT, prefix=prefix))


@on_both
@pytest.mark.parametrize("model", ["fr-en-rnn", "fr-en-luong", "fr-en"])
def test_ribbons_cards_and_numbers_of_one_step_agree(open_page, tracers, model):
    text = "Je suis étudiant."
    shown = open_page(link(model, text, open="steps", by="pieces", step=2))
    trace = tracers[model].trace(text, raw=open_page.raw)
    reading = trace.model.reading
    row = trace.attention("cross").weights_LNTS[reading.layer, reading.head or 0, 1]
    shown_row = shown.eval_on_selector_all(
        ".source .chip", "all => all.map(one => Number(one.title.split('\\n')[0].replace('−', '-')))"
    )
    assert np.abs(np.array(shown_row) - row).max() < 1e-3
    card = shown.locator(".card", has=shown.locator(".sum"))
    values = card.locator(".bars.attention .value").all_inner_texts()
    assert np.abs(np.array(list(map(float, values))) - row).max() < 1e-3
    assert shown.locator(".agreement.not").count() == 0
    drawn = shown.locator(".step-of.wide .context .value[fill]").all_text_contents()
    assert np.abs(np.array(list(map(float, drawn))) - row).max() < 1e-3
    # The weights and the mixture of either model; a Transformer's products and Bahdanau's cell too.
    ticks = shown.locator(".step-of.wide .tick-of").all_text_contents()
    assert ticks == ["✓"] * {"fr-en-rnn": 3, "fr-en-luong": 3, "fr-en": 4}[model]


@on_both
def test_cards_come_one_by_one_and_back(open_page):
    shown = open_page(link("fr-en-luong", "Je suis étudiant.", open="steps"))
    cards = shown.locator(".card").count()
    text = shown.inner_text(".mechanics")
    for place in range(cards):
        shown.keyboard.press(".")
        assert shown.locator(".card.to-come").count() == cards - place - 1
        assert shown.locator(".step-of.wide .part.to-come").count() == cards - place - 1
        assert shown.locator(".step-of.wide .part.now").count() == 1
    shown.keyboard.press(".")
    assert shown.inner_text(".mechanics") == text  # all of them again
    before = shown.inner_text(".timeline")
    shown.keyboard.press("]")
    assert shown.inner_text(".timeline") != before
    shown.keyboard.press("[")
    assert shown.inner_text(".timeline") == before


def test_recurrent_steps_stand_side_by_side_with_words_like_each(open_page, tracers):
    trace = tracers["fr-en-rnn"].traces(TEXT)[0]
    shown = open_page(link(open="unrolled"))
    assert shown.locator(".columns-of.encoder > li").count() == len(trace.source.pieces)
    columns = shown.locator(".columns-of.decoder > li")
    assert columns.count() == len(trace.target.pieces)
    shown.locator(".columns-of.encoder button").nth(2).click()
    near = shown.locator(".nearest bdi").all_inner_texts()
    assert [one.replace("▁", "").replace("_", "").strip() for one in near] == [
        one.replace("▁", "") for one in trace.source.nearest[2]
    ]
    columns.nth(3).locator("button").click()
    sync_api.expect(shown).to_have_url(re.compile("[#&]step=4(&|$)"))
    weights = trace.attention("cross").weights_LNTS[0, 0, 3]
    notes = shown.locator(".columns-of.encoder small").all_inner_texts()
    assert notes == [f"α {weight:.2f}" for weight in weights]


@pytest.mark.parametrize(
    ("view", "kind"), [("view=encoder&head=2.1", "encoder"), ("head=3.2&view=cross", "cross")]
)
def test_attention_as_matrices_is_recomputed_and_shown_for_one_word(open_page, tracers, view, kind):
    text = "Le chat dort parce qu'il est fatigué."
    shown = open_page(f"{link('fr-en', text, open='matrices')}&{view}")
    assert shown.locator(".matrices .agreement").count() == 2
    assert shown.locator(".matrices .agreement.not").count() == 0
    shown.locator(".matrices .who button").nth(3).click()
    assert shown.locator('.matrices .who [aria-pressed="true"]').count() == 1
    attention = tracers["fr-en"].traces(text)[0].attention(kind)
    layer, head = (1, 0) if kind == "encoder" else (2, 1)
    for card, wanted in ((3, attention.scores_LNTS), (4, attention.weights_LNTS)):
        values = shown.locator(f".matrices .card:nth-child({card}) .value").all_inner_texts()
        found = [float(value.replace("−", "-")) for value in values]
        assert np.allclose(found, wanted[layer, head, 3], atol=1e-3)


def solve(shown, lesson):
    """Do what the task of a lesson asks for."""
    match lesson:
        case 1:
            shown.keyboard.press("End")
            for _ in range(8):
                shown.keyboard.press("]")
        case 2:
            shown.fill(
                ".asking textarea",
                "Le chat noir de ma voisine dort toute la journée sur le vieux canapé rouge.",
            )
        case 3:  # "student" of "I'm a student."
            for _ in range(2):
                shown.keyboard.press("]")
        case 4:
            shown.fill(".dictionary input[type=text]", "2017")
            shown.locator(".temperature").fill("0")
        case 5:
            shown.locator(".turn").fill("90")
        case 6:
            for _ in range(5):
                shown.keyboard.press(".")
        case 7:
            shown.locator('.grid td[data-r="1"][data-c="1"]').click()
        case 8:
            drag(shown, "European", "économique")
        case 9:
            shown.locator(".measures .erasure").click()
        case 10:
            shown.locator(".selector .choice .encoder").click()
        case 11:
            shown.locator(".off-head_off").click()
        case 12:
            shown.locator(".off-positions_off").click()
        case 13:
            shown.locator(".lengths .choice button").last.click()


@on(("open_page", "language"), [("server", "en"), ("file", "ko")])
def test_every_lesson_loads_by_its_address_and_its_task_can_be_solved(open_page, language):
    shown = open_page(f"lesson=1&lang={language}")
    for lesson in range(1, 14):
        if lesson > 1:
            shown.click(".lesson .buttons button:nth-child(2)")
        count = f"{lesson} of 13" if language == "en" else f"{lesson}/13"
        sync_api.expect(shown.locator(".lesson .count")).to_have_text(count)
        settled(shown)
        assert shown.locator(".task.done").count() == 0, lesson
        solve(shown, lesson)
        shown.wait_for_selector(".task.done", timeout=10_000)
        settled(shown)
    fresh = open_page(f"lesson=6&lang={language}")
    assert fresh.locator(".card[aria-current]").count() == 1
    for part in (".lesson .task", ".step-of.wide"):  # both in sight
        sync_api.expect(fresh.locator(part)).to_be_in_viewport(ratio=1)


@on_both
def test_the_interface_is_korean_when_asked(open_page):
    shown = open_page(link(open="map,likely,steps,unrolled,beam", lang="ko"))
    drag(shown, "European", "économique")
    wait_for_change(shown)
    shown.keyboard.press("e")
    text = shown.evaluate(
        """() => {
          const own = document.body.cloneNode(true);
          for (const one of own.querySelectorAll('[lang]:not([lang=ko]), .math, code, script, select, noscript, svg, bdi, kbd'))
            one.remove();
          return own.textContent;
        }"""
    )
    strings = json.loads((files("regard.viewer") / "static" / "i18n" / "ko.json").read_text())
    left = set(re.findall(r"[A-Za-z]{3,}", text)) - set(
        re.findall(r"[A-Za-z]{3,}", " ".join(strings.values()))
    )
    assert left <= {"regard"}


@on_both
def test_a_telephone_does_not_scroll_sideways_and_a_finger_moves_the_gaze(open_page):
    shown = open_page(link(open="unrolled,steps"), width=360, has_touch=True)
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360
    touch(shown, "European", "économique")
    wait_for_change(shown)
    assert "economic European" in " ".join(said(shown))
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360


@on_both
def test_files_are_saved_as_what_is_shown(open_page, browser, tracers, tmp_path):
    shown = open_page(link(measure="scores", view="cross", pin="5.7"))
    drag(shown, "European", "économique")
    wait_for_change(shown)
    (change,) = changes_in(shown)
    forced = LookSo(step=change["step"], weights=change["weights"], layer=0)
    trace = tracers["fr-en-rnn"].trace(TEXT, interventions=[forced])
    saved = {}
    for form in ("svg", "png", "csv", "json", "html"):
        with shown.expect_download() as download:
            shown.select_option(".viewer:not(.beside) .save select", form)
        path = tmp_path / f"saved.{form}"
        download.value.save_as(path)
        saved[form] = path.read_bytes()
    root = ElementTree.fromstring(saved["svg"])
    pinned = root.find(".//*[@class='pinned']")
    assert pinned is not None and "économique" in pinned.text
    width, height = struct.unpack(">II", saved["png"][16:24])
    assert (width, height) == (2 * int(root.get("width")), 2 * int(root.get("height")))
    found, wanted = (
        list(csv.reader(io.StringIO(text)))
        for text in (saved["csv"].decode(), trace.to_csv(by="pieces", measure="scores"))
    )
    assert [row[0] for row in found] == [row[0] for row in wanted] and found[0] == wanted[0]
    numbers = [np.array([row[1:] for row in rows[1:]], dtype=float) for rows in (found, wanted)]
    assert np.allclose(*numbers, atol=2e-3)
    assert load_trace(tmp_path / "saved.json").target.text == trace.target.text
    context = browser.new_context(offline=True)
    again = context.new_page()
    again.goto((tmp_path / "saved.html").as_uri())
    again.wait_for_selector(".target .chip")
    assert "economic European" in " ".join(said(again, ".viewer"))
    with again.expect_download() as download:  # a saved page saves pictures too
        again.select_option(".save select", "svg")
    assert ElementTree.fromstring(download.value.path().read_bytes()).tag.endswith("svg")
    context.close()


@on(
    ("open_page", "scheme", "address"),
    [
        *(
            ("server", scheme, address)
            for scheme in ("light", "dark")
            for address in (
                "open=map,likely,steps,unrolled,beam",
                "m=fr-en&open=heads,map,matrices,steps",
                "lesson=13",
                "c=1&open=",
            )
        ),
        ("file", "light", "open=map,likely,steps,unrolled,beam"),
        ("file", "dark", "lesson=13"),
    ],
)
def test_axe_finds_nothing_serious(open_page, scheme, address):
    script = axe()
    if script is None:
        pytest.skip("no axe-core: npm install axe-core, and set NODE_PATH")
    shown = open_page(address, color_scheme=scheme)
    assert serious(shown, script) == []


def axe():
    modules = os.environ.get("NODE_PATH", "")
    script = Path(modules) / "axe-core" / "axe.min.js"
    return script if modules and script.exists() else None


def serious(shown, script):
    """What axe finds wrong with the page as it is."""
    shown.evaluate(script.read_text())
    found = shown.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    return [
        (one["id"], [node["target"] for node in one["nodes"]][:3])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


EVALUATION = {
    "format": "regard-evaluation/1",
    "num_sentences": 2,
    "signatures": {"bleu": "nrefs:1"},
    "systems": [
        {
            "name": "fr-en-rnn",
            "scores": {"bleu": {"value": 31.25}, "chrf": {"value": 50.0}},
            "by_length": [
                {"first_word": 1, "last_word": 10, "num_sentences": 1, "bleu": 40.0},
                {"first_word": 11, "last_word": None, "num_sentences": 1, "bleu": 20.0},
            ],
        }
    ],
    "sentences": [
        {"source": source, "num_words": words, "reference": "<b>", "translations": [said]}
        for source, words, said in [
            ("Le chat dort.", 4, {"system": "fr-en-rnn", "text": "The cat sleeps.", "chrf": 80.0}),
            ("Il " * 12, 12, {"system": "other", "text": "He", "chrf": 1.0}),
        ]
    ],
}


@on_both
def test_scores_are_those_of_the_cards_or_of_an_evaluation_that_is_opened(open_page, tmp_path):
    shown = open_page("lang=en", width=360)
    shown.click("text=Scores")
    sync_api.expect(shown).to_have_url(re.compile("#/evaluate&"))
    first = shown.locator(".scores-of tbody").first.locator("tr", has_text="fr-en-rnn").locator("td")
    card = Loaded.open("fr-en-rnn").file.card["tests"]["Europarl"]
    assert first.first.inner_text() == f"{card['bleu']:.1f}"
    assert shown.locator(".scores-of .chart .line").count() == 2 * 4  # the models, and their keys
    assert axe() is None or serious(shown, axe()) == []
    wrong, path = tmp_path / "wrong.json", tmp_path / "evaluation.json"
    wrong.write_text("[]")
    path.write_text(json.dumps(EVALUATION))
    shown.set_input_files(".opening input", wrong)
    assert "wrong.json is not an evaluation" in shown.inner_text(".scores-of .error")
    shown.set_input_files(".opening input", path)
    shown.click(".bins button:first-child")
    assert shown.locator(".found li").count() == 1 and "<b>" in shown.inner_text(".found")
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360
    shown.click(".ask-again")
    sync_api.expect(shown.locator(".asking textarea")).to_have_value("Le chat dort.")
    settled(shown)
    shown.click("text=About")
    assert shown.inner_text(".about-of h2") == f"regard {regard.__version__}"
    assert "Tatoeba" in shown.inner_text(".about-of") and "Names, numbers" in shown.inner_text(".about-of")
    shown.reload()
    shown.wait_for_selector(".about-of")
    assert axe() is None or serious(shown, axe()) == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_server_tells_of_one_model_and_the_lesson_on_length_has_its_scores(server):
    with urllib.request.urlopen(f"{server.url}/api/v1/models/fr-en-rnn") as answer:
        told = json.load(answer)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{server.url}/api/v1/models/none")
    wanted = [round(row["bleu"], 1) for row in told["card"]["tests"]["Europarl"]["by_length"]]
    lessons = json.loads((files("regard.viewer") / "static" / "lessons.json").read_text())["lessons"]
    (lines,) = (one["widget"]["lines"] for one in lessons if one.get("widget", {}).get("kind") == "lengths")
    assert next(line["bleu"] for line in lines if line["name"] == "fr-en-rnn") == wanted


def test_a_teacher_can_write_lessons(tmp_path, browser):
    lesson = {
        "id": "verbs",
        "title": {"en": "Where verbs come from </script>"},
        "text": {"en": ["Look at the verb first."]},
        "stage": {"model": "fr-en-rnn", "text": "Le chat dort.", "open": ["map"]},
        "task": {"text": {"en": "Go to the end."}, "check": {"at": "last"}},
    }
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"lessons": [lesson]}))
    assert json.loads(read_lessons(path))["lessons"] == [lesson]
    html, _ = served_page(read_lessons(path))
    shown = browser.new_page()
    shown.set_content(html)
    assert json.loads(shown.inner_text("#lessons"))["lessons"][0]["title"] == lesson["title"]
    shown.close()
    path.write_text(
        json.dumps({"lessons": [lesson | {"task": {"text": {"en": "x"}, "check": {"sayd": "x"}}}]})
    )
    with pytest.raises(ConfigError, match=r"mine.json: lessons.0.task.check.sayd: "):
        read_lessons(path)


def test_our_lessons_are_of_the_same_form():
    ours = files("regard.viewer") / "static" / "lessons.json"
    with as_file(ours) as path:
        lessons = json.loads(read_lessons(path))["lessons"]
    assert len(lessons) == 13 and all(one["title"]["ko"] and one["text"]["ko"] for one in lessons)


def test_every_figure_of_the_texts_has_an_address_of_the_page():
    """Those that name a lesson are opened by the test of the lessons."""
    text = (Path(__file__).parent.parent / "docs" / "lessons.md").read_text()
    rows = re.findall(r"^\| .* \| `#([^`]+)` \|$", text.partition("## The figures")[2], re.MULTILINE)
    drawers = (files("regard.viewer") / "static" / "app" / "drawers.js").read_text()
    names = set(re.findall(r"(\w+): \"", re.search(r"DRAWERS = {(.*)}", drawers)[1]))
    assert len(rows) == 31 and len(names) == 7
    for row in rows:
        asked = dict(parse_qsl(row, strict_parsing=True))
        assert asked.keys() <= {"lesson", "m", "s", "open", "view", "step", "iv"}
        assert asked.keys() & {"lesson", "m"} and int(asked.get("lesson", 1)) in range(1, 14)
        assert asked.get("m", "fr-en") in bundled() and asked.get("open", "map") in names
        assert all(change["type"] == "force" for change in json.loads(asked.get("iv", "[]")))


def test_wrong_input_is_said_and_the_page_goes_on(open_page):
    shown = open_page("m=nothing&s=Oui.&iv=[{&step=99&part=7", allowed=["400"])
    assert said(shown)
    shown.goto(shown.url.partition("#")[0] + "#" + link(iv='[{"type":"look","step":99,"weights":[1]}]'))
    shown.wait_for_selector(".error")
    shown.fill(".asking textarea", "Le chat dort.")
    shown.keyboard.press("Enter")
    shown.wait_for_selector(".error", state="detached")
    settled(shown)
    assert "cat" in " ".join(said(shown)).lower()


@on_both
def test_steps_and_changes_are_fast(open_page):
    """A generous bound, for machines that do other work; docs/experiments.md has the times."""
    shown = open_page(link())
    took = shown.evaluate(
        """() => {
          const begun = performance.now();
          document.dispatchEvent(new KeyboardEvent("keydown", { key: "]" }));
          document.body.getBoundingClientRect();
          return performance.now() - begun;
        }"""
    )
    assert took < 500
    begun = time.monotonic()
    drag(shown, "European", "économique")
    wait_for_change(shown)
    assert time.monotonic() - begun < 10


def tab_to(shown, wanted):
    """Press the tab key until this has the focus."""
    for _ in range(60):
        shown.keyboard.press("Tab")
        if shown.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
            return
    raise AssertionError(f"no tab stop {wanted}")


@on("open_page", ["file"])
def test_all_can_be_done_by_keyboard_and_nothing_moves_by_itself(open_page):
    shown = open_page("open=", reduced_motion="reduce")
    keys = shown.keyboard
    tab_to(shown, ".asking textarea")
    keys.press("Control+a")
    keys.type("Le chat dort.")
    keys.press("Enter")
    settled(shown)
    assert said(shown)[:2] == ["The", "cat"]
    before = said(shown)
    tab_to(shown, ".source .chip")
    keys.press("ArrowRight")
    keys.press("1")
    wait_for_change(shown)
    keys.press("Control+z")
    shown.wait_for_selector(".changes .now", state="detached")
    settled(shown)
    assert said(shown) == before
    tab_to(shown, ".drawer-steps")
    keys.press("Enter")
    for key in "..":
        keys.press(key)
    assert shown.locator(".card[aria-current] .step-number").inner_text() == "2"
    keys.press("]")
    keys.press("e")
    shown.wait_for_selector(".editor input:focus")
    keys.type("dog")
    keys.press("Enter")
    wait_for_change(shown)
    assert said(shown)[:2] == ["The", "dog"]
    keys.press("c")
    shown.wait_for_selector(".beside .bottleneck")
    settled(shown)
    keys.press("?")
    shown.wait_for_selector("dialog[open]")
    keys.press("Escape")
    shown.wait_for_selector("dialog[open]", state="detached")
    shown.evaluate("document.activeElement.blur()")
    tab_to(shown, ".lessons summary")
    keys.press("Enter")
    keys.press("Tab")
    keys.press("Enter")
    sync_api.expect(shown.locator(".lesson .count")).to_have_text("1 of 13")
    settled(shown)
    moving = """() => [...document.querySelectorAll("*")].filter((one) => {
      const { transitionDuration, animationName } = getComputedStyle(one);
      return parseFloat(transitionDuration) > 0 || animationName !== "none";
    }).map((one) => one.outerHTML.slice(0, 80))"""
    assert shown.evaluate(moving) == [] and shown.evaluate("document.getAnimations().length") == 0


@pytest.mark.parametrize(
    "without",
    [
        "delete window.Worker",
        "delete window.WebAssembly; Object.defineProperty(window, 'localStorage', {get() { throw 1; }})",
    ],
)
def test_a_file_works_without_workers_web_assembly_or_storage(browser, one_file, without):
    context = browser.new_context(offline=True)
    context.add_init_script(without)
    shown = context.new_page()
    shown.goto(f"{one_file.as_uri()}#{link(text='Le chat dort <img src=x onerror=window.ran=1>.')}")
    shown.wait_for_selector(".viewer:not(.beside) .target .chip", timeout=60_000)
    assert "cat" in " ".join(said(shown)).lower() and shown.evaluate("window.ran === undefined")
    context.close()


def test_a_site_asks_for_a_model_when_it_is_needed_and_works_in_any_folder(browser, tmp_path, capsys):
    folder = tmp_path / "course" / "attention"
    assert run(["page", "fr-en-rnn", "fr-en-fixed", "--site", str(folder)]) == 0
    assert run(["page", "fr-en-rnn", "fr-en-fixed", "--site", str(folder)]) == 0  # one of ours is replaced
    (tmp_path / "notes").write_text("mine")
    assert run(["page", "fr-en-fixed", "--site", str(tmp_path)]) == 2
    assert "was not written by regard" in capsys.readouterr().err
    headers = (folder / "_headers").read_text()
    assert "frame-ancestors 'none'" in headers and "immutable" in headers

    asked = []

    class Host(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            asked.append(self.path)

    host = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Host, directory=str(tmp_path)))
    threading.Thread(target=host.serve_forever, daemon=True).start()
    context = browser.new_context()
    shown = context.new_page()
    address = f"http://127.0.0.1:{host.server_port}/course/attention/#{link(text='Le chat dort.')}"
    shown.goto(address)
    settled(shown)
    models = [path.rpartition("/")[2] for path in asked if ".regard" in path]
    assert "cat" in " ".join(said(shown)) and [one.split(".")[0] for one in models] == ["fr-en-rnn"]
    assert shown.evaluate("() => fetch('http://127.0.0.1:9/x').then(() => false, () => true)")
    shown.route("**/fr-en-fixed.*", lambda route: route.abort())
    shown.locator("button.compare").click()
    assert "cannot be fetched" in shown.inner_text(".error")
    shown.unroute("**/fr-en-fixed.*")
    shown.locator(".asking .go").click()  # it is asked for again
    shown.wait_for_selector(".beside .bottleneck")
    context.route("**/regard-worker.js", lambda route: route.abort())
    other = context.new_page()
    other.goto(address)
    settled(other)
    assert said(other) == said(shown)
    context.close()
    host.shutdown()
    host.server_close()


def test_show_makes_a_page_that_goes_on_by_itself(browser, tracers, tmp_path, capsys):
    path = tmp_path / "look.html"
    asked = ["show", "fr-en-rnn", "Le chat dort.", "--prefix", "A", "--beam", "2", "--live"]
    assert run(asked) == 2 and "--html" in capsys.readouterr().err
    assert run([*asked, "--html", str(path), "--set", "diversity=1"]) == 2
    assert "no search option 'diversity'" in capsys.readouterr().err
    assert run([*asked, "--html", str(path)]) == 0
    expected = words_of(tracers["fr-en-rnn"].trace("Le chat dort.", prefix="A", beam_size=2, raw=True))
    context = browser.new_context(offline=True)
    shown = context.new_page()
    shown.goto(path.as_uri())
    settled(shown)
    assert said(shown) == expected and "A" in shown.inner_text(".change")
    shown.locator(".undo").click()
    shown.wait_for_selector(".changes .now", state="detached")
    settled(shown)
    assert said(shown)[0] == "The"
    # In the frame of a notebook there is no address and no storage.
    notebook = context.new_page()
    notebook.set_content(LivePage.of("fr-en-rnn").showing("Le chat dort.", prefix="A")._repr_html_())
    frame = notebook.frame_locator("iframe")
    frame.locator(".changes .now").wait_for()
    assert frame.locator(".target .chip .text").first.inner_text() == "A"
    context.close()


def test_a_damaged_model_is_said_and_the_others_go_on(browser, tmp_path):
    path = tmp_path / "two.html"
    LivePage.of("fr-en-rnn", "fr-en-fixed").save(path)
    html = path.read_text()
    start = html.index('id="model-0"')
    path.write_text(html[: start + 200_000] + "AAAA" + html[start + 200_004 :])
    shown = browser.new_page()
    shown.goto(f"{path.as_uri()}#{link(text='Le chat dort.')}")
    assert "damaged" in shown.inner_text(".error")
    shown.select_option(".model", "fr-en-fixed")
    settled(shown)
    assert "cat" in " ".join(said(shown)) and shown.locator(".error").count() == 0
    shown.close()


def test_a_lesson_whose_model_is_not_there_says_so(browser, tmp_path):
    LivePage.of("fr-en-rnn").save(tmp_path / "one.html")
    shown = browser.new_page()
    shown.goto(f"{(tmp_path / 'one.html').as_uri()}#lesson=11")
    settled(shown)
    assert "fr-en," in shown.inner_text(".missing-model")
    shown.close()
