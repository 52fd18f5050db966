// The page with an engine behind it: a sentence, a model, what was changed; the same sentence without attention beside.

import { h, morph, printable } from "#app/dom";
import { t, fixed, languageName, percent } from "#app/i18n";
import { memory } from "#app/store";
import { mount } from "#app/viewer";
import { served } from "#app/source";
import { names, unitOf, units } from "#app/views";
import { focus, looks, moved } from "#app/gaze";
import { differing } from "#app/differ";
import * as lessons from "#app/lessons";

const FIRST = { model: "fr-en-rnn", text: "L'accord sur la zone économique européenne a été signé en août 1992." };
const PAUSE = 400; // milliseconds after the last letter
const SETTLED = 250; // milliseconds after the last key that moves a weight
const FORMS = ["svg", "png", "html", "csv", "json"];
const MAX_TEXT = 600; // characters: what a server traces

export async function start({ app, main, asked, remember }) {
  const source = served();
  const models = await source.models();
  const known = (name) => models.find((model) => model.name === name);
  const state = { text: "", model: "", changes: [], compare: false, part: 0, lesson: null, busy: false, error: null };
  let [before, now, twin] = [null, null, null]; // parts of translations: as it was, as it is, without attention
  let viewer = null;
  let other = null;
  let [asking, typing, settling] = [null, null, null];
  const places = { lesson: h("div"), ask: h("div"), changes: h("div"), note: h("div") };
  const host = h("article", { class: "viewer" });
  const beside = h("article", { class: "viewer beside", hidden: true });
  main.append(places.lesson, places.ask, places.note, places.changes, h("div", { class: "slots" }, host, beside));

  const used = () => state.changes.filter((change) => !change.off);
  const request = () => ({
    text: before?.[state.part]?.trace.source.text ?? state.text,
    model: state.model,
    changes: state.changes,
  });

  const live = {
    can: source.can,
    has: (change) => used().some((one) => same(one, change)),
    change(change, step = null) {
      // What comes later was made for a translation that is no more.
      const rest = state.changes.filter((one) => !same(one, change) && (change.type !== "prefix" || one.type !== "prefix"));
      state.changes = [...rest, change];
      renew(step);
    },
    toggle(change) {
      if (live.has(change)) state.changes = state.changes.filter((one) => !same(one, change));
      else state.changes = [...state.changes.filter((one) => !same(one, change)), change];
      renew();
    },
    /** Give a source word this share of a step's weights. */
    look(place, share, step = viewer.store.state.step) {
      const { trace } = viewer;
      const view = viewer.store.state;
      const first = view.by === "words" ? units(trace.target)[unitOf(trace.target, "words", step)][0] : step;
      const pieces = view.by === "words" ? units(trace.source)[place] : [place];
      const pending = used().find((one) => one.type === "look" && one.step === first);
      const row = moved(pending?.weights ?? looks(trace, view, first), pieces, share);
      const change = { type: "look", step: first, weights: row, ...focus(trace, view) };
      change.name = names(trace.source, view.by)[place];
      change.word = names(trace.target, view.by)[unitOf(trace.target, view.by, first)];
      change.share = share;
      state.changes = [...state.changes.filter((one) => !same(one, change)), change];
      clearTimeout(settling);
      settling = setTimeout(() => renew(first), share === 1 ? 0 : SETTLED);
    },
    /** Say something else at a step and go on from there. */
    edit(step, text) {
      const { target } = viewer.trace;
      const start = target.pieces[step].start ?? wordStart(target, step);
      const head = target.letters.slice(0, start).join("");
      const joins = text.startsWith(" ") || !head || /\s$/.test(head);
      live.change({ type: "prefix", text: (head + (joins ? text.replace(/^ /, "") : text)).trimStart() }, step);
    },
    saving,
  };

  function saving() {
    return h(
      "label",
      { class: "save" },
      h("span", null, t("save")),
      h(
        "select",
        { onchange: (event) => save(event.currentTarget), "aria-label": t("save") },
        h("option", { value: "" }, "…"),
        FORMS.map((form) => h("option", { value: form }, form.toUpperCase())),
        h("option", { value: "link" }, t("save.link")),
      ),
    );
  }

  async function save(list) {
    const form = list.value;
    list.value = "";
    if (!form) return;
    try {
      if (form === "link") {
        await navigator.clipboard.writeText(location.href);
        say(t("save.copied"));
        return;
      }
      const blob = await source.file(request(), form);
      const link = h("a", { href: URL.createObjectURL(blob), download: `regard.${form}` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    } catch (error) {
      say(reason(error));
    }
  }

  const reason = (error) => (t(error.message) === error.message ? printable(error.message) : t(error.message));
  const say = (text) => {
    state.error = text;
    draw();
  };

  /** Ask for what the state says, and show it. `step`: where to stand afterwards. */
  async function renew(step = null) {
    asking?.abort();
    const mine = (asking = new AbortController());
    state.busy = true;
    state.error = null;
    draw();
    const { text, model } = state;
    const whole = { text, model };
    try {
      const first = before?.request === JSON.stringify(whole) ? before : source.ask(whole, mine.signal);
      const beforeNow = await first;
      beforeNow.request = JSON.stringify(whole);
      if (mine.signal.aborted) return;
      before = beforeNow;
      state.part = Math.min(state.part, before.length - 1);
      const [changed, without] = await Promise.all([
        used().length ? source.ask(request(), mine.signal) : before.slice(state.part, state.part + 1),
        state.compare && partner()
          ? twin?.request === text
            ? twin
            : source.ask({ text, model: partner().name }, mine.signal)
          : null,
      ]);
      if (mine.signal.aborted) return;
      now = changed;
      twin = without;
      if (twin) twin.request = text;
      state.busy = false;
      await show(step);
    } catch (error) {
      if (error.name === "AbortError" || mine.signal.aborted) return;
      state.busy = false;
      state.error = reason(error);
    }
    draw();
    remember();
  }

  /** A model of the same languages without attention. */
  const partner = () => {
    const mine = known(state.model);
    return mine?.has_attention
      ? models.find((model) => !model.has_attention && model.source === mine.source && model.target === mine.target)
      : null;
  };

  async function show(step) {
    const view = viewer?.store?.state ?? { ...asked.state, open: opened() };
    const hadFocus = host.contains(document.activeElement) && document.activeElement.dataset?.place;
    const wasSource = Boolean(document.activeElement?.closest?.(".source"));
    const entry = now[0];
    const old = before[state.part];
    host.replaceChildren();
    viewer = await mount(host, entry, {
      id: "trace",
      live,
      state: { ...view, playing: false, edit: null, marks: null, ...(step === null ? {} : { step }) },
    });
    if (!viewer.store) return;
    const marks = used().length ? differing(wordsOf(entry), wordsOf(old)) : null;
    viewer.act.set({ marks });
    viewer.store.listen(() => (remember(), follow(), draw()));
    beside.hidden = !twin;
    other = null;
    if (twin) {
      beside.replaceChildren();
      other = await mount(beside, twin[Math.min(state.part, twin.length - 1)], {
        id: "without",
        live: { ...live, can: () => "reason.fixed", saving: () => null },
        state: { by: view.by, open: [] },
      });
      other.act?.set({ marks: differing(names(other.trace.target, "words"), names(viewer.trace.target, "words")) });
      follow();
    }
    if (hadFocus)
      host.querySelector(`.${wasSource ? "source" : "target"} [data-place="${hadFocus}"]`)?.focus({ preventScroll: true });
  }

  /** One transport moves both. */
  function follow() {
    if (!other?.store || !viewer?.store) return;
    const at = unitOf(viewer.trace.target, "words", viewer.store.state.step);
    const all = units(other.trace.target);
    other.act.set({ step: all[Math.min(at, all.length - 1)][0], by: viewer.store.state.by });
  }

  const wordsOf = (entry) => {
    const { words, text } = entry.trace.target;
    const letters = Array.from(text);
    return words.map((word) => letters.slice(word.start, word.end).join(""));
  };

  function draw() {
    morph(places.ask.firstChild ?? places.ask.appendChild(h("form")), drawAsk());
    morph(places.note.firstChild ?? places.note.appendChild(h("div")), drawNote());
    morph(places.changes.firstChild ?? places.changes.appendChild(h("section")), drawChanges());
    morph(places.lesson.firstChild ?? places.lesson.appendChild(h("section")), drawLesson());
  }

  function drawAsk() {
    const without = partner();
    const model = known(state.model);
    return h(
      "form",
      { class: "asking", "aria-label": t("ask"), onsubmit: (event) => (event.preventDefault(), submit()) },
      h(
        "label",
        { class: "sentence-field" },
        h("span", { class: "unseen" }, t("ask.text")),
        h("textarea", {
          rows: 1,
          maxlength: MAX_TEXT,
          lang: model?.source,
          placeholder: t("ask.text"),
          spellcheck: "false",
          value: state.text,
          oninput: (event) => typed(event.currentTarget.value),
          onkeydown: (event) => {
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            submit();
          },
        }),
      ),
      h(
        "label",
        null,
        h("span", { class: "unseen" }, t("ask.model")),
        h(
          "select",
          { class: "model", onchange: (event) => choose(event.currentTarget.value) },
          models.map((one) =>
            h(
              "option",
              { value: one.name, selected: one.name === state.model },
              `${one.name} · ${languageName(one.source)} → ${languageName(one.target)}`,
            ),
          ),
        ),
      ),
      h("button", { type: "submit", class: "go", "aria-busy": String(state.busy) }, t("ask.go")),
      h(
        "button",
        {
          type: "button",
          class: "compare",
          "aria-pressed": String(state.compare),
          disabled: !without,
          title: without ? null : t("compare.none"),
          onclick: () => set({ compare: !state.compare }),
        },
        t("compare"),
      ),
    );
  }

  function drawNote() {
    const several = before?.length > 1;
    return h(
      "div",
      { class: "asked" },
      state.error ? h("p", { class: "error", role: "alert" }, state.error) : null,
      several
        ? h(
            "div",
            { class: "choice parts", role: "group", "aria-label": t("parts") },
            before.map((_, part) =>
              h(
                "button",
                {
                  type: "button",
                  "aria-pressed": String(part === state.part),
                  onclick: () => set({ part, changes: [] }),
                },
                part + 1,
              ),
            ),
          )
        : null,
      viewer?.store && !state.changes.length && !memory.get("moved") && viewer.trace.attentions.cross
        ? h("p", { class: "first-hint" }, t("first_hint"))
        : null,
      known(state.model)?.kind === "transformer" ? h("p", { class: "hint" }, t("transformer.hint")) : null,
    );
  }

  function drawChanges() {
    if (!state.changes.length || !before) return h("section", { hidden: true });
    if (used().length) memory.set("moved", "yes");
    const [old, fresh] = [before[state.part], now[0]];
    const [was, is] = [wordsOf(old), wordsOf(fresh)];
    return h(
      "section",
      { class: "panel changes", "aria-label": t("changes") },
      h(
        "ul",
        { class: "chips-of" },
        state.changes.map((change) =>
          h(
            "li",
            { class: `change${change.off ? " off" : ""}` },
            h(
              "button",
              {
                type: "button",
                "aria-pressed": String(!change.off),
                title: t("change.toggle"),
                onclick: () => set({ changes: state.changes.map((one) => (one === change ? { ...one, off: !one.off } : one)) }),
              },
              "✎ ",
              described(change),
            ),
            h(
              "button",
              {
                type: "button",
                class: "undo",
                "aria-label": `${t("undo")}: ${described(change)}`,
                title: t("undo"),
                onclick: () => set({ changes: state.changes.filter((one) => one !== change) }),
              },
              "↶",
            ),
          ),
        ),
      ),
      h(
        "dl",
        { class: "versions", lang: known(state.model)?.target, "aria-live": "polite" },
        version("before", was, is, old),
        version("now", is, was, fresh),
      ),
    );
  }

  function version(key, words, others, entry) {
    const marks = new Set(differing(words, others));
    return h(
      "div",
      { class: key },
      h("dt", { lang: app.store.state.language }, t(key)),
      h(
        "dd",
        null,
        words.map((word, at) => [marks.has(at) ? h("mark", null, printable(word)) : printable(word), " "]),
        h("small", { lang: app.store.state.language }, t("log_prob_of", { value: fixed(entry.trace.target.log_prob, 1) })),
      ),
    );
  }

  function described(change) {
    if (change.type === "prefix") return t("change.prefix", { text: printable(change.text) });
    if (change.type === "look")
      return change.share === 1
        ? t("change.gaze", { word: printable(change.word ?? String(change.step + 1)), name: printable(change.name ?? "") })
        : t("change.weight", {
            word: printable(change.word ?? String(change.step + 1)),
            name: printable(change.name ?? ""),
            share: percent(change.share ?? 0),
          });
    if (change.type === "head_off")
      return t("change.head_off", { layer: change.layer + 1, head: change.head + 1, kind: t(`view.${change.kind}`) });
    return t(`change.${change.type}`);
  }

  function drawLesson() {
    return lessons.draw({
      number: state.lesson,
      facts: facts(),
      go: (number) => open(number),
      close: () => ((state.lesson = null), draw(), remember()),
    });
  }

  /** What a task can ask about. */
  function facts() {
    if (!viewer?.store || !now) return {};
    const view = viewer.store.state;
    return {
      said: viewer.trace.target.text,
      words: viewer.trace.source.words.length,
      changes: used().map((change) => change.type),
      open: view.open,
      compare: state.compare && Boolean(twin),
      at: act_at(),
      last: viewer.act.stops().length - 1,
      micro: view.micro,
      view: view.view,
      measure: view.measure,
      model: state.model,
      pinned: view.pin !== null,
    };
  }
  const act_at = () => viewer.act.stops().findLastIndex((step) => step <= viewer.store.state.step);

  function open(number) {
    const lesson = lessons.LESSONS[number];
    if (!lesson) return;
    const { stage } = lesson;
    state.lesson = number;
    lessons.begin(number);
    asked.state = {};
    const view = { step: 0, view: "alignment", layer: null, head: null, measure: "weights", micro: null, pin: null };
    if (viewer?.store) viewer.act.set({ ...view, ...stage.state, open: stage.open ?? ["map"] });
    else asked.state = { ...stage.state, open: stage.open };
    set({ text: stage.text, model: known(stage.model) ? stage.model : state.model, changes: stage.changes ?? [], compare: Boolean(stage.compare), part: 0 });
    scrollTo({ top: 0 });
  }

  const opened = () => asked.state.open ?? memory.get("open")?.split(",").filter(Boolean) ?? ["map"];
  function typed(text) {
    state.text = text;
    state.changes = [];
    state.part = 0;
    clearTimeout(typing);
    typing = setTimeout(() => submit(), PAUSE);
  }
  function submit() {
    clearTimeout(typing);
    if (state.text.trim()) renew();
  }
  function set(changes) {
    Object.assign(state, changes);
    renew();
  }
  function choose(model) {
    const [mine, next] = [known(state.model), known(model)];
    const text = mine?.source === next.source ? state.text : lessons.exampleOf(next.source);
    set({ model, text, changes: [], part: 0 });
  }

  /** Read the state from an address. */
  function read(params) {
    const number = Number(params.get("lesson")) - 1;
    if (params.get("lesson") && number !== state.lesson && lessons.LESSONS[number] && !params.get("s")) return open(number);
    state.lesson = params.get("lesson") && lessons.LESSONS[number] ? number : null;
    const model = known(params.get("m")) ? params.get("m") : known(FIRST.model) ? FIRST.model : models[0].name;
    const text = params.get("s") ?? (known(model).source === "fr" ? FIRST.text : lessons.exampleOf(known(model).source));
    let changes = [];
    try {
      changes = JSON.parse(params.get("iv") ?? "[]").filter((one) => typeof one?.type === "string");
    } catch {
      state.error = t("reason.link");
    }
    Object.assign(state, { model, text: text.slice(0, MAX_TEXT), changes, compare: params.get("c") === "1", part: Number(params.get("part") ?? 1) - 1 || 0 });
    return renew(asked.state.step ?? null);
  }

  const params = () => {
    const found = { m: state.model, s: state.text };
    if (state.lesson !== null) found.lesson = state.lesson + 1;
    if (state.compare) found.c = 1;
    if (state.part) found.part = state.part + 1;
    if (state.changes.length) found.iv = JSON.stringify(state.changes);
    if (viewer?.store) found.open = viewer.store.state.open.join();
    return found;
  };
  await read(asked.params);
  return {
    get viewer() {
      return viewer?.store ? viewer : null;
    },
    get other() {
      return other;
    },
    params,
    read,
    draw,
    lesson: (number) => open(number),
    toggleCompare: () => partner() && set({ compare: !state.compare }),
  };
}

/** Whether two changes are of the same thing. */
function same(one, other) {
  const keys = ["type", "step", "layer", "head", "kind"];
  return keys.every((key) => (one[key] ?? null) === (other[key] ?? null));
}

/** Where the word of a piece begins in the text. */
function wordStart(target, step) {
  const word = target.words.find((one) => one.pieces.includes(step));
  return word?.start ?? target.letters.length;
}
