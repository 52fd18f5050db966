"""The page that shows traces, as a reader meets it: in a real browser, from a file, without a network."""

import itertools
import json
import re
import shutil
from importlib.resources import files

import numpy as np
import pytest
from small import SAME_BUT_FOR_SIZE, random_weights, shrink

from regard.alignment.reading import Reading
from regard.draw.colours import shaded
from regard.flags import FLAGS
from regard.model.presets import PRESETS
from regard.modelfile import ModelFile
from regard.options.model import AttendThenStep, LocalWindow, RecurrentOptions, StepAttendStep
from regard.options.text import CharacterOptions
from regard.text.tokenizer import TokenizerPair
from regard.trace.document import HeadOff, LookSo, MaskOff, PositionsOff
from regard.trace.make import Tracer
from regard.trace.mechanics import cards_json
from regard.trace.views import Trace, Which, rendered
from regard.viewer.page import page

sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright to drive a browser with")
CHROMIUM = shutil.which("chromium")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")

TEXT = "ab cab dabc 👍 é"  # an emoji is one character to Python and two to JavaScript
SAID = "c ab d' eé"
TOKENIZERS = TokenizerPair.learn(["a bc cab dé"], ["c ab d' e"], CharacterOptions(joint=True))
STATIC = files("regard.viewer") / "static"
STRINGS = {
    language: json.loads((STATIC / "i18n" / f"{language}.json").read_text()) for language in ("en", "ko")
}
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\u202eabc",
    "\u1112\u1161\u11ab",
]


def tracer_of(preset, reading=None, **update):
    options = shrink(PRESETS[preset]).model_copy(update=update)
    weights = random_weights(options, TOKENIZERS.source.vocab_size, TOKENIZERS.target.vocab_size)
    return Tracer.of(ModelFile(options, weights, TOKENIZERS, "fr", "en", {}, {}, reading), "small.regard")


@pytest.fixture(scope="module")
def traces():
    """One trace of each family; that of the Transformer reads its alignment off the step after.

    What they say is given, because what random models say has no words; one is searched, for its beam.
    """
    record = [f"decoder.1.cross.{name}" for name in ("query", "keys", "values", "heads")]
    # Random models seldom come to an end by themselves.
    searched = tracer_of("bahdanau2015").trace("ab cab", beam_size=3, extra_tokens=4, raw=True)
    return {
        "transformer": tracer_of("regard-small", Reading(1, 0, True)).trace(
            TEXT, force=SAID, effects=True, record=record
        ),
        "rnn": tracer_of("bahdanau2015").trace(TEXT, force=SAID, effects=True),
        "luong": tracer_of("luong2015").trace("ab", force="c ab"),
        "plain": tracer_of("sutskever2014").trace(TEXT, force=SAID, effects=True),
        "searched": searched,
    }


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def show(browser, tmp_path):
    """Opens a page from a file, offline. At the end nothing may have been asked for, and nothing gone wrong."""
    contexts, wrong = [], []

    def show(html, address="", width=1280, height=900, allowed=(), **more):
        context = browser.new_context(viewport={"width": width, "height": height}, locale="en-US", **more)
        contexts.append(context)
        context.set_offline(True)
        shown = context.new_page()
        path = tmp_path / f"page{len(contexts)}.html"
        path.write_text(html, encoding="utf-8")

        def note(what):
            if not any(one in what for one in allowed):
                wrong.append(what)

        shown.on(
            "request",
            lambda request: request.url.startswith(("data:", path.as_uri(), "about:")) or note(request.url),
        )
        shown.on(
            "console", lambda message: note(message.text) if message.type in ("error", "warning") else None
        )
        shown.on("pageerror", lambda error: note(str(error)))
        shown.on("dialog", lambda dialog: (note(dialog.message), dialog.dismiss()))
        shown.goto(f"{path.as_uri()}#{address}")
        if more.get("java_script_enabled", True) and "<body" in html:
            shown.wait_for_selector("body.ready")
        return shown

    yield show
    for context in contexts:
        context.close()
    assert wrong == []


def says(shown, address):
    """The address comes to say this; it is written a few times a second at most."""
    sync_api.expect(shown).to_have_url(re.compile(f"[#&]{re.escape(address)}(&|$)"), timeout=20_000)


def cell(shown, row, column):
    return shown.locator(f'.grid td[data-r="{row}"][data-c="{column}"]')


def labels_of(shown):
    """What all cells say, row by row."""
    return shown.eval_on_selector_all(
        ".grid tbody tr",
        "rows => rows.map(row => [...row.querySelectorAll('td')].map(td => td.getAttribute('aria-label')))",
    )


def number_of(label):
    return float(re.search(r": ([−+]?[\d.]+)", label)[1].replace("−", "-"))


def check_cells(shown, drawn):
    """All cells say the numbers of Python, to 3 decimals."""
    labels = labels_of(shown)
    assert (len(labels), len(labels[0])) == drawn.values_TS.shape and np.size(drawn.values_TS) >= 20
    for names, row_name, values in zip(labels, drawn.rows, drawn.values_TS.tolist(), strict=True):
        for label, column_name, value in zip(names, drawn.columns, values, strict=True):
            assert label.startswith(f"{row_name} ← {column_name}: ")
            if np.isnan(value):
                assert label.endswith("masked, value 0")
            else:
                assert number_of(label) == pytest.approx(value, abs=0.00051 + 1e-4 * abs(value))
    # Where two are nearly the same, either may be called the highest.
    for names, values in zip(labels, drawn.values_TS, strict=True):
        (top,) = [place for place, label in enumerate(names) if "in row" in label]
        sizes = np.abs(values) if "strongest" in names[top] else values
        assert sizes[top] == pytest.approx(np.nanmax(sizes), abs=2e-3)


@needs_browser
@pytest.mark.parametrize("family", ["transformer", "rnn"])
@pytest.mark.parametrize("by", ["words", "pieces"])
def test_every_cell_tells_the_number_of_python(show, traces, family, by):
    trace = traces[family]
    shown = show(trace.to_html(), f"by={by}")
    check_cells(shown, trace.heat_map(by=by))
    shown.keyboard.press("m")
    check_cells(shown, trace.heat_map(by=by, measure="scores"))
    shown.keyboard.press("m")
    check_cells(shown, trace.heat_map(by=by, measure="erasure"))
    shown.keyboard.press("m")
    said = trace.effects.only_piece
    assert [
        [re.search(r"would say (.*?), \d", label)[1] for label in row] for row in labels_of(shown)
    ] == said


@needs_browser
@pytest.mark.slow
def test_each_head_and_every_mean_tells_the_numbers_of_python(show, traces):
    trace = traces["transformer"]
    shown = show(trace.to_html())
    for by, kind in itertools.product(("words", "pieces"), ("cross", "encoder", "decoder")):
        shown.click(f".timeline .{by}")
        shown.click(f".selector .choice .{kind}")
        check_cells(shown, trace.heat_map(Which(kind, 1 if kind == "cross" else 0, 0), by))
        shown.click('.thumbnail[data-at="1.2"]')
        check_cells(shown, trace.heat_map(Which(kind, 1), by))
        shown.click(".whole")
        check_cells(shown, trace.heat_map(Which(kind), by))


@needs_browser
@pytest.mark.parametrize(("measure", "scaled"), [("weights", False), ("erasure", False), ("weights", True)])
def test_cells_have_the_colours_of_the_pictures_of_python(show, traces, measure, scaled):
    drawn = traces["rnn"].heat_map(measure=measure)
    shown = show(traces["rnn"].to_html(), f"measure={measure}")
    if scaled:
        shown.check(".heatmap input.scaled")
        says(shown, "scaled=1")
    found = shown.eval_on_selector_all(
        ".grid td[data-c]",
        "all => all.map(one => getComputedStyle(one).backgroundColor.match(/\\d+/g).map(Number))",
    )
    bound = np.abs(drawn.values_TS).max() if drawn.signed else 1.0
    if scaled:  # each row has the whole range of colours
        values_TS, bound = drawn.values_TS / drawn.values_TS.max(axis=1, keepdims=True), 1.0
    else:
        values_TS = drawn.values_TS
    colours = shaded(values_TS, bound, drawn.signed)
    assert np.abs(np.array(found) - colours.reshape(-1, 3)).max() <= 1


@needs_browser
def test_a_piece_of_two_words_gives_half_to_each(show, traces):
    plain = json.loads(traces["rnn"].to_json()) | {"effects": None}
    plain["source"]["words"] = [
        {"start": 0, "end": 1, "pieces": [0, 1]},
        {"start": 1, "end": 2, "pieces": [1, 2]},
        {"start": 13, "end": 14, "pieces": [13, 14, 15]},
    ]
    plain["target"]["words"] = [
        {"start": 0, "end": 4, "pieces": [0, 1, 2]},
        {"start": 2, "end": 6, "pieces": [2, 3]},
    ]
    trace = Trace.model_validate(plain)
    trace.check()
    check_cells(show(trace.to_html()), trace.heat_map())


@needs_browser
def test_weights_that_are_no_softmax_are_those_of_python(show):
    window = LocalWindow(kind="local-p", half_width=2)
    attention = shrink(PRESETS["luong2015"]).attention.model_copy(update={"window": window})
    local = tracer_of("luong2015", attention=attention).trace(TEXT, force=SAID)
    assert local.attention("cross").weights is not None
    check_cells(show(local.to_html(), "by=pieces"), local.heat_map(by="pieces"))


@needs_browser
def test_interventions_are_named_and_what_they_did_is_shown(show):
    tracer = tracer_of("regard-small")
    num_source = len(tracer.trace(TEXT, force=SAID).source.pieces)
    changes = [
        LookSo(step=1, weights=[1.0] + [0.0] * (num_source - 1)),
        HeadOff(kind="encoder", layer=0, head=1),
        MaskOff(),
        PositionsOff(),
    ]
    trace = tracer.trace(TEXT, force=SAID, interventions=changes)
    shown = show(trace.to_html(), "by=pieces")
    assert shown.locator(".note.changed").count() == len(changes) + 1  # and the translation was given
    assert "layer 1, head 2" in shown.locator(".note.changed").nth(1).inner_text()
    check_cells(shown, trace.heat_map(by="pieces"))
    assert number_of(labels_of(shown)[1][0]) == 1
    shown.click(".selector .choice .decoder")
    assert shown.locator(".grid td.masked").count() == 0


@needs_browser
@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_flag_is_said_in_words_and_only_a_warning_warns(show, traces, language):
    trace = traces["rnn"]
    flagged = trace.model_copy(
        update={"target": trace.target.model_copy(update={"flags": [*FLAGS, HOSTILE[1]]})}
    )
    notes = show(flagged.to_html(), f"lang={language}").locator(".note[title]")
    wanted = [flag.short if language == "en" else flag.korean for flag in FLAGS.values()]
    assert [one.strip("⚠○ ") for one in notes.all_inner_texts()] == [*wanted, HOSTILE[1]]
    warns = notes.evaluate_all("all => all.map(one => one.classList.contains('warning'))")
    assert warns == [*(flag.kind == "warning" for flag in FLAGS.values()), True]


@needs_browser
def test_what_the_decoder_may_not_see_is_said_to_be_masked(show, traces):
    trace = traces["transformer"]
    shown = show(trace.to_html(), "view=decoder&head=1.1")
    labels = labels_of(shown)
    for row, names in enumerate(labels):
        assert all(("masked, value 0" in label) == (column > row) for column, label in enumerate(names))
    assert shown.locator(".grid td.masked").count() == sum(range(len(labels)))
    shown.keyboard.press("m")
    check_cells(shown, trace.heat_map(Which("decoder", 0, 0), measure="scores"))


@needs_browser
@pytest.mark.slow
def test_stepping_by_keyboard_moves_everything_together(show, traces):
    trace = traces["transformer"]
    shown = show(trace.to_html(), "by=pieces")

    def seen():
        slider = int(shown.input_value(".slider"))
        assert shown.locator(".grid tr.now").get_attribute("data-row") == str(slider)
        assert shown.locator(".timeline .current").get_attribute("data-place") == str(slider)
        says(shown, f"step={slider + 1}")
        assert shown.inner_text(".mechanics h2").startswith(f"How step {slider + 1} is computed")
        said = trace.target.pieces[slider]
        assert shown.inner_text(".saying").startswith(f"Step {slider + 1} of {len(trace.target.pieces)}: ")
        assert shown.inner_text(".candidates li:first-child .name") == said.candidates.pieces[0]
        return slider

    before = shown.inner_text("#app")
    places = [seen()]
    for key in "]]][":
        shown.keyboard.press(key)
        places.append(seen())
    assert places == [0, 1, 2, 3, 2]
    shown.keyboard.press("End")
    assert seen() == len(trace.target.pieces) - 1
    shown.keyboard.press("]")
    assert seen() == len(trace.target.pieces) - 1
    shown.keyboard.press("Home")
    assert seen() == 0 and shown.inner_text("#app") == before


@needs_browser
@pytest.mark.slow
def test_nothing_plays_by_itself_and_playing_stops_at_the_end(show, traces):
    trace = traces["transformer"]
    shown = show(trace.to_html(), reduced_motion="reduce")
    shown.clock.install()
    shown.reload()
    shown.wait_for_selector("body.ready")
    shown.clock.run_for(1500)
    assert shown.input_value(".slider") == "0"
    shown.keyboard.press("Space")
    shown.clock.run_for(2100)
    assert shown.input_value(".slider") == "2" and shown.locator(".transport .pause").count() == 1
    shown.select_option(".speed select", "4")
    shown.clock.run_for(1000 + 250 * len(trace.target.pieces))
    assert shown.input_value(".slider") == str(len(trace.target.pieces) - 1)
    assert shown.locator(".transport .play").count() == 1
    assert shown.evaluate("document.getAnimations().length") == 0


@needs_browser
def test_the_map_can_be_walked_and_pinned_by_keyboard(show, traces):
    shown = show(traces["rnn"].to_html())
    assert shown.locator('.grid td[tabindex="0"]').count() == 1
    cell(shown, 0, 0).focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"):
        shown.keyboard.press(key)
    label = cell(shown, 1, 1).get_attribute("aria-label")
    assert shown.evaluate("document.activeElement.getAttribute('aria-label')") == label
    assert shown.inner_text(".heatmap .readout") == label
    shown.keyboard.press("Enter")
    assert cell(shown, 1, 1).get_attribute("aria-selected") == "true"
    says(shown, "pin=2.2")
    shown.keyboard.press("]")
    assert shown.locator("td.pinned").count() == 1
    assert shown.evaluate("document.activeElement.getAttribute('aria-label')") == label
    shown.keyboard.press("Escape")
    assert shown.locator("td.pinned").count() == 0
    says(shown, "by=words&lang=en")
    shown.keyboard.press("Home")
    assert shown.evaluate("document.activeElement.dataset.c") == "0"


@needs_browser
def test_letters_are_keys_unless_they_are_switched_off_or_typed(show, traces):
    shown = show(traces["transformer"].to_html())
    shown.focus(".speed select")
    shown.keyboard.press("]")
    assert shown.input_value(".slider") == "0"
    shown.evaluate("document.activeElement.blur()")
    shown.keyboard.press("?")
    assert shown.locator("dialog.help").is_visible()
    shown.uncheck(".help .letters")
    shown.click(".help .close")
    for key in "]wmhlgd?":
        shown.keyboard.press(key)
    assert shown.input_value(".slider") == "0" and not shown.locator("dialog.help").is_visible()
    says(shown, "view=alignment&measure=weights&by=words&lang=en")
    shown.keyboard.press("End")  # not a letter
    assert shown.input_value(".slider") != "0"


@needs_browser
def test_all_heads_are_drawn_and_keys_go_from_one_to_the_next(show, traces):
    shown = show(traces["transformer"].to_html())
    colours = shown.eval_on_selector_all(
        ".thumbnail canvas",
        "all => all.map(one => new Set(one.getContext('2d').getImageData(0, 0, one.width, one.height).data).size)",
    )
    assert len(colours) == 2 * (2 + 1) and min(colours) > 4
    assert shown.locator(".thumbnail.reads").count() == 1
    assert "aligns best" in shown.locator(".thumbnail.reads").get_attribute("title")
    for key, place in (("h", "2.2"), ("h", "2.1"), ("H", "2.2"), ("l", "1.2"), ("L", "2.2")):
        shown.keyboard.press(key)
        says(shown, f"view=cross&head={place}")
        assert shown.locator('.thumbnail[aria-pressed="true"]').get_attribute("data-at") == ".".join(
            str(int(one) - 1) for one in place.split(".")
        )
    shown.focus('.thumbnail[aria-pressed="true"]')
    shown.keyboard.press("ArrowUp")
    shown.keyboard.press("Enter")
    says(shown, "head=1.2")


@needs_browser
@pytest.mark.parametrize(("family", "key"), [("transformer", "sum"), ("rnn", "context")])
def test_the_mechanics_recompute_what_the_model_mixed(show, traces, family, key):
    trace = traces[family]
    shown = show(trace.to_html())
    cards = cards_json(trace)
    assert shown.locator(".mechanics .card").count() == len(cards)
    card = shown.locator(".mechanics .card").nth([one["key"] for one in cards].index(key))
    assert "agrees" in card.locator(".agreement").inner_text()
    bars = shown.locator(".mechanics .bars.attention").last
    weights = [float(one) for one in bars.locator(".value").all_inner_texts()]
    assert sum(weights) == pytest.approx(1, abs=0.01)
    assert weights == sorted(weights, reverse=True)  # the rest is out of sight until it is scrolled to
    if family == "transformer":
        shown.keyboard.press("l")  # the other layer
        assert "not recorded" not in shown.inner_text(".mechanics")
        assert "agrees" in shown.inner_text(".mechanics .agreement")
        few = {name: state for name, state in trace.states.items() if ".cross." not in name}
        shown = show(trace.model_copy(update={"states": few}).to_html())
        assert "not recorded" in shown.inner_text(".mechanics") and shown.locator(".agreement").count() == 0


@needs_browser
@pytest.mark.parametrize(
    ("attention", "num_ticks"),
    [(StepAttendStep(), 3), (AttendThenStep(window=LocalWindow(kind="local-p")), 2)],
)
def test_a_step_is_drawn_with_every_card_and_what_follows_from_others_is_ticked(show, attention, num_ticks):
    cell = "gru-after" if attention.kind == "step-attend-step" else "gru"
    options = shrink(RecurrentOptions(cell=cell, attention=attention, readout="tanh", tie="none"))
    weights = random_weights(options, TOKENIZERS.source.vocab_size, TOKENIZERS.target.vocab_size)
    model = ModelFile(options, weights, TOKENIZERS, "fr", "en", {}, {})
    trace = Tracer.of(model, "small.regard").trace("ab", force="c ab", gates=True)
    shown = show(trace.to_html())
    numbers = shown.locator(".step-of.wide .badge text").all_text_contents()
    assert sorted(numbers) == [str(one + 1) for one in range(len(cards_json(trace)))]
    # A Gaussian window makes weights that are no softmax of the scores.
    assert shown.locator(".step-of.wide .tick-of").all_text_contents() == ["✓"] * num_ticks


@needs_browser
@pytest.mark.parametrize(
    "link", ["view=toString", "view=__proto__", "view=cross&head=99.99", "step=1e9&measure=constructor"]
)
def test_a_link_from_elsewhere_does_no_harm(show, traces, link):
    shown = show(traces["transformer"].to_html())
    shown.goto(f"{shown.url.partition('#')[0]}#{link}")
    shown.reload()
    shown.wait_for_selector("body.ready")
    assert shown.locator(".viewer table").count() > 0


@needs_browser
def test_the_beam_says_the_translation_and_arrows_walk_in_it(show, traces):
    trace = traces["searched"]
    shown = show(trace.to_html())
    names = shown.eval_on_selector_all(
        ".beam [role=tree] .node.best text", "all => all.map(one => one.textContent)"
    )
    assert [name.removeprefix("★ ") for name in names] == [piece.piece for piece in trace.target.pieces]
    nodes, best = trace.beam.nodes, trace.beam.best

    def at():
        return int(shown.evaluate("document.activeElement.dataset.node"))

    shown.focus('.beam g[tabindex="0"]')
    assert at() == best[0]
    shown.keyboard.press("ArrowRight")
    assert at() == best[1]
    shown.keyboard.press("ArrowLeft")
    assert at() == best[0]
    shown.keyboard.press("ArrowDown")
    assert at() != best[0] and nodes[at()].parent is None
    told = shown.inner_text(".beam .readout")
    assert nodes[at()].piece in told and f"{nodes[at()].score:.3f}".replace("-", "−") in told


@needs_browser
def test_a_model_without_attention_is_shown_without_it(show, traces):
    trace = traces["plain"]
    shown = show(trace.to_html())
    assert "no attention" in shown.inner_text(".notes")
    check_cells(shown, trace.heat_map(measure="erasure"))
    assert shown.locator(".bottleneck").count() == 1  # every ribbon passes through the one vector
    assert shown.locator(".ribbons path").count() == shown.locator(".source .chip").count() + 1
    assert shown.locator(".measures button").count() == 1


@needs_browser
def test_traces_stand_beside_each_other_and_keys_go_to_the_one_in_use(show, traces):
    shown = show(rendered([traces["transformer"], traces["luong"]], "html").decode())
    sliders = shown.locator(".slider")
    boxes = [shown.locator(".viewer").nth(number).bounding_box() for number in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] < boxes[1]["x"]
    shown.keyboard.press("]")
    shown.locator(".viewer").nth(1).locator(".mechanics h2").click()
    shown.keyboard.press("]")
    shown.keyboard.press("]")
    assert [sliders.nth(number).input_value() for number in range(2)] == ["1", "2"]
    says(shown, "step.2=3")
    shown.reload()
    shown.wait_for_selector("body.ready")
    assert [sliders.nth(number).input_value() for number in range(2)] == ["1", "2"]
    assert (
        shown.evaluate("new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size")
        == shown.locator("[id]").count()
    )


@needs_browser
def test_of_many_traces_one_is_shown_at_a_time(show, traces):
    many = [traces["rnn"], traces["luong"], traces["plain"], traces["transformer"]]
    shown = show(rendered(many, "html").decode())
    assert (
        shown.locator(".viewer:visible").count() == 1 and shown.locator(".sentences-of button").count() == 4
    )
    shown.locator(".sentences-of button").nth(1).click()
    assert shown.locator(".viewer").nth(1).is_visible() and shown.locator(".viewer:visible").count() == 1
    assert shown.locator(".viewer:visible .ribbons path").count() > 0
    shown.keyboard.press("]")
    says(shown, "step.2=2")


@needs_browser
def test_a_saved_page_says_what_it_cannot_do(show, traces):
    shown = show(traces["rnn"].to_html())
    assert "regard page" in shown.inner_text(".no-engine")
    assert shown.locator("[role=slider], textarea").count() == 0


@needs_browser
def test_hostile_tokens_are_shown_as_text(show, traces):
    plain = json.loads(traces["searched"].to_json())
    for side in ("source", "target"):
        for piece, text in zip(plain[side]["pieces"], HOSTILE, strict=False):
            piece["piece"] = text
    for piece in plain["target"]["pieces"]:
        piece["candidates"]["pieces"][: len(HOSTILE)] = HOSTILE
    for node in plain["beam"]["nodes"]:
        node["piece"] = HOSTILE[0]
    plain["model"]["label"] = plain["request"]["prefix"] = HOSTILE[1]
    plain["warnings"] = [HOSTILE[0]]
    trace = Trace.model_validate(plain)
    html = page([json.dumps(plain)], [cards_json(trace)], "<svg/>", HOSTILE[0])
    assert html.count("</script>") == 5  # texts, what the page is, traces, import map, start
    shown = show(html, "by=pieces")
    columns = shown.eval_on_selector_all(".grid thead th", "all => all.map(one => one.textContent)")
    assert columns[:4] == [
        *HOSTILE[:2],
        "abc",
        "한",
    ]  # the turned direction is gone, the letters are a syllable
    assert shown.locator("#app img, #app script").count() == 0
    assert HOSTILE[1] in shown.inner_text(".facts") and HOSTILE[0] in shown.inner_text(".notes")


@needs_browser
def test_a_script_that_is_put_into_the_page_does_not_run(traces, show):
    html = traces["rnn"].to_html()
    for put in (
        "<script>document.title = 'taken'</script>",
        "<img src='data:,' onerror=\"document.title = 'taken'\">",
    ):
        assert html.count('<div id="app">') == 1
        changed = html.replace('<div id="app">', f'{put}<div id="app">')
        shown = show(changed, allowed=["Content Security Policy"])  # the page itself runs: it becomes ready
        assert shown.title() != "taken"


@needs_browser
def test_a_real_text_with_markup_is_shown_as_text(show):
    text = "a</script><img src=x onerror=alert(1)>"
    shown = show(tracer_of("bahdanau2015").trace(text, beam_size=2, max_ratio=0.5, raw=True).to_html())
    assert shown.inner_text(".sentence.source .text") == text
    assert shown.locator("#app img, #app script").count() == 0


@needs_browser
def test_a_call_to_another_site_is_refused(show, traces):
    html = traces["luong"].to_html()
    shown = show(
        html, allowed=("https://example.org", "Content Security Policy", "Failed to fetch", "violates")
    )
    tried = """async () => {
        const image = new Image();
        const loaded = new Promise(done => { image.onload = () => done(true); image.onerror = () => done(false); });
        image.src = 'https://example.org/x.png';
        const fetched = await fetch('https://example.org/').then(() => true, () => false);
        return [fetched, await loaded];
    }"""
    shown.evaluate(
        "() => { window.refused = []; document.addEventListener('securitypolicyviolation', e => refused.push(e.effectiveDirective)); }"
    )
    assert shown.evaluate(tried) == [False, False]
    refused = shown.evaluate("refused")
    assert "connect-src" in refused and "img-src" in refused


@needs_browser
@pytest.mark.slow
def test_a_notebook_shows_two_outputs_that_leave_each_other_alone(show, traces):
    bundles = [traces[name]._repr_mimebundle_()["text/html"] for name in ("transformer", "luong")]
    shown = show(f"<!DOCTYPE html><meta charset=utf-8>{bundles[0]}<hr>{bundles[1]}")
    frames = [shown.locator("iframe").nth(number).content_frame for number in range(2)]
    for frame in frames:
        frame.locator("body.ready").wait_for()
    frames[0].locator(".transport .forward").click()
    frames[0].locator(".transport .forward").press("]")
    frames[1].locator(".transport .forward").click()
    frames[1].locator(".language").click()
    assert [frame.locator(".slider").input_value() for frame in frames] == ["2", "1"]
    assert [frame.locator(".timeline h2").inner_text() for frame in frames] == [
        STRINGS["en"]["timeline"],
        STRINGS["ko"]["timeline"],
    ]
    assert shown.locator("img").count() == 2 and "→" in shown.locator("img").first.get_attribute("alt")


def damaged(trace, how):
    plain = json.loads(trace.to_json())
    cross = plain["attentions"][0]
    if how == "format":
        plain["format"] = "regard-trace/9"
    elif how == "damaged":
        cross["log_weights"]["data"] = cross["log_weights"]["data"][:-8] + "AAAAAAA="
    elif how == "pieces":
        plain["source"]["pieces"].clear()
    elif how == "source.words":
        plain["source"]["words"][0]["pieces"] = [99]
    elif how == "cross":
        plain["target"]["pieces"].pop()
    elif how == "cross.sums":
        cross["log_sums"] = cross["log_weights"]
    elif how == "cross.heads":
        cross["heads"][0].pop()
    elif how == "reading":
        plain["model"]["reading"]["layer"] = 7
    elif how == "beam":
        plain["beam"]["nodes"][-1]["parent"] = 999
    elif how == "beam.best":
        plain["beam"]["best"].pop()
    elif how == "effects.erasure":
        plain["effects"]["erasure"][0].pop()
    return json.dumps(plain)


@needs_browser
def test_a_trace_that_cannot_be_is_not_drawn(show, traces):
    misfits = ["pieces", "source.words", "cross", "cross.sums", "cross.heads", "reading"]
    ways = ["format", "damaged", *misfits, "beam", "beam.best", "effects.erasure"]
    chosen = [traces["searched" if how.startswith("beam") else "transformer"] for how in [*ways, ""]]
    documents = [damaged(trace, how) for trace, how in zip(chosen, [*ways, ""], strict=True)]
    shown = show(page(documents, list(map(cards_json, chosen)), "<svg/>", "x"))
    messages = shown.locator(".refusal").all_text_contents()
    details = shown.locator(".refusal").evaluate_all(
        "all => all.map(one => one.querySelector('code')?.textContent)"
    )
    assert len(messages) == len(ways) and shown.locator(".grid").count() == 1
    for how, message, detail in zip(ways, messages, details, strict=True):
        key = how if how in ("format", "damaged") else "misfit"
        assert STRINGS["en"]["refusal"] in message and STRINGS["en"][f"unsound.{key}"] in message
        assert key != "misfit" or detail == how
    shown.keyboard.press("]")  # goes to the one that is drawn
    assert shown.input_value(".slider") == "1"


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("family", ["transformer", "rnn", "plain", "searched"])
def test_in_korean_no_english_is_left(show, traces, family):
    shown = show(traces[family].to_html())
    english = [
        re.compile(re.sub(r"\\\{\w+\\\}|\\?#", r".*?", re.escape(text)))
        for key, text in STRINGS["en"].items()
        if text != STRINGS["ko"][key] and re.search(r"[a-z]{3}", re.sub(r"\{\w+\}", "", text))
    ]
    assert len(english) > 100
    found_before = shown.evaluate(TEXTS_OF_PAGE)
    assert any(one.fullmatch(text) for text in found_before for one in english)
    shown.keyboard.press("g")
    assert shown.evaluate("document.documentElement.lang") == "ko"
    says(shown, "lang=ko")
    for view in ("", "decoder", "cross"):
        if view and family == "transformer":
            shown.click(f".selector .choice .{view}")
        for _ in range(4):
            shown.keyboard.press("m")
            found = shown.evaluate(TEXTS_OF_PAGE)
            assert [text for text in found for one in english if one.fullmatch(text)] == []
    assert shown.locator(".timeline .source .chips").get_attribute("lang") == "fr"
    assert shown.locator(".grid tbody th").first.get_attribute("lang") in ("en", "fr")
    shown.keyboard.press("g")
    assert (
        shown.inner_text(".timeline h2")
        == STRINGS["en"]["timeline.without" if family == "plain" else "timeline"]
    )


TEXTS_OF_PAGE = """() => {
    const found = new Set();
    const walk = document.createTreeWalker(document.getElementById('app'), NodeFilter.SHOW_ALL);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
        if (node.nodeType === Node.TEXT_NODE) found.add(node.data.trim());
        else if (node.getAttribute) for (const name of ['title', 'aria-label', 'aria-valuetext']) found.add(node.getAttribute(name) ?? '');
    }
    return [...found].filter(Boolean);
}"""


@needs_browser
@pytest.mark.parametrize("family", ["transformer", "searched"])
def test_a_telephone_scrolls_down_only_and_a_tap_pins(show, traces, family):
    shown = show(traces[family].to_html(), width=360, height=740, has_touch=True)
    for key in ("", "w", "m", "m", "m", "g"):
        if key:
            shown.keyboard.press(key)
        assert shown.evaluate("document.documentElement.scrollWidth") <= 360
    small = shown.eval_on_selector_all(
        "button, select, .grid td[data-c], input[type=range]",
        "all => all.map(one => [one.className, one.getBoundingClientRect()]).filter(([, box]) => box.width && Math.min(box.width, box.height) < 24).map(([name]) => name)",
    )
    assert small == []
    cell(shown, 0, 0).tap()
    assert shown.locator("td.pinned").count() == 1


@needs_browser
def test_light_and_dark_follow_the_system_and_the_switch(show, traces):
    shown = show(traces["luong"].to_html(), color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = shown.evaluate(background)
    shown.keyboard.press("d")
    light = shown.evaluate(background)
    assert light != dark
    says(shown, "theme=light")
    shown.keyboard.press("d")
    assert shown.evaluate(background) == dark
    says(shown, "theme=dark")


@needs_browser
def test_without_scripts_and_on_paper_there_is_the_picture(show, traces):
    html = traces["luong"].to_html()
    shown = show(html, java_script_enabled=False)
    assert shown.locator("#picture img").is_visible()
    shown = show(html)
    assert not shown.locator("#picture img").is_visible()
    shown.emulate_media(media="print")
    assert shown.locator("#picture img").is_visible() and not shown.locator("#app").is_visible()


def test_the_same_traces_give_the_same_page(traces):
    trace = traces["transformer"]
    assert trace.to_html() == trace.to_html()


def test_the_languages_have_the_same_keys_and_places():
    assert list(STRINGS["en"]) == list(STRINGS["ko"])
    for key, text in STRINGS["en"].items():
        assert sorted(re.findall(r"\{\w+\}|#", text)) == sorted(
            re.findall(r"\{\w+\}|#", STRINGS["ko"][key])
        ), key


def test_scripts_ask_only_for_what_there_is():
    scripts = {one.name: one.read_text() for one in (STATIC / "app").iterdir() if one.name.endswith(".js")}
    for name, script in scripts.items():
        assert len(script.splitlines()) < 400, name
        assert not re.search(
            r"innerHTML|outerHTML\s*=|insertAdjacentHTML|document\.write|\beval\(|https?://(?!www\.w3\.org)",
            script,
        ), name
        assert {f"{one}.js" for one in re.findall(r'"#app/(\w+)"', script)} <= set(scripts)
        assert set(re.findall(r'\bt\("([^"]+)"', script)) <= set(STRINGS["en"]), name


@pytest.mark.parametrize("preset", [name for name in PRESETS if name not in SAME_BUT_FOR_SIZE])
def test_every_card_has_a_title_in_every_language(preset):
    trace = tracer_of(preset).trace("ab", max_ratio=0.5, beam_size=1)
    for card in cards_json(trace):
        assert STRINGS["en"][f"card.{card['key']}"] == card["title"]
        if re.search(r"\b(the|then|with|over|times|whatever)\b", card["formula"]):
            assert "formula." + re.sub(r"\d+", "#", card["formula"]) in STRINGS["ko"]
