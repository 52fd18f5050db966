// The page with an engine behind it: a sentence, a model, what was changed; the same sentence without attention beside.

import { h, morph, printable } from "#app/dom";
import { t } from "#app/i18n";
import { memory } from "#app/store";
import { mount } from "#app/viewer";
import { heaviest, names, ribbons, unitOf, units } from "#app/views";
import { focus, looks, moved } from "#app/gaze";
import { differing } from "#app/differ";
import { FIRST, MAX_TEXT, question, remarks } from "#app/question";
import { FORMS } from "#app/picture";
import { saving } from "#app/save";
import { same, wordsOf } from "#app/changes";
import * as changes from "#app/changes";
import * as lessons from "#app/lessons";

const BESIDE = "(min-width: 1180px)"; // as in style.css
const PAUSE = 400; // milliseconds after the last letter
const SETTLED = 250; // milliseconds after the last key that moves a weight

export async function start({ app, main, asked, remember, source }) {
  const models = await source.models();
  const known = (name) => models.find((model) => model.name === name);
  const state = { text: "", model: "", changes: [], compare: false, part: 0, lesson: null, busy: false, error: null, giving: false };
  let [before, now, twin] = [null, null, null]; // parts of translations: as it was, as it is, without attention
  let viewer = null;
  let other = null;
  let [asking, typing, settling] = [null, null, null];
  const places = { lesson: h("div"), ask: h("div"), changes: h("div"), note: h("div") };
  const host = h("article", { class: "viewer" });
  const beside = h("article", { class: "viewer beside", hidden: true });
  main.append(places.lesson, places.ask, places.note, places.changes, h("div", { class: "slots" }, host, beside));

  const usual = () => (known(FIRST.model) ?? models[0]).name;
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
    give: () => ((state.giving = !state.giving), draw(), document.querySelector(".giving textarea")?.focus()),
    saving: () =>
      saving({
        forms: [...FORMS, ...source.forms],
        file: (form) => (FORMS.includes(form) ? viewer.act.picture(form) : source.file(request(), form)),
        say: (what) => say(what.message ? reason(what) : what),
      }),
  };

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
    remember(); // a reload asks for the same
    const { text, model } = state;
    const whole = { text, model };
    const begun = performance.now();
    /** An answer, with the time it took, in milliseconds. */
    const timed = async (coming) => {
      const answer = await coming;
      for (const { trace } of answer) trace.took ??= performance.now() - begun;
      return answer;
    };
    try {
      const first = before?.request === JSON.stringify(whole) ? before : timed(source.ask(whole, mine.signal));
      const beforeNow = await first;
      beforeNow.request = JSON.stringify(whole);
      if (mine.signal.aborted) return;
      before = beforeNow;
      state.part = Math.min(state.part, before.length - 1);
      const [changed, without] = await Promise.all([
        used().length ? timed(source.ask(request(), mine.signal)) : before.slice(state.part, state.part + 1),
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
    entry.effects?.().then((effects) => {
      entry.trace.effects = effects;
      delete entry.effects;
      if (now[0] !== entry || !viewer?.store) return;
      Object.assign(viewer.trace, { effects, coming: false });
      viewer.act.set({});
      viewer.redraw();
    }, () => {}); // dropped, since something else was asked
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

  const on = { set, submit, typed, choose, given };
  function draw() {
    main.classList.toggle("busy", state.busy);
    main.classList.toggle("taught", state.lesson !== null && beside.hidden); // where it is wide enough, the lesson stands beside
    if (used().length) memory.set("moved", "yes");
    morph(places.ask.firstChild ?? places.ask.appendChild(h("form")), question({ state, models, model: known(state.model), without: partner(), on }));
    morph(places.note.firstChild ?? places.note.appendChild(h("div")), remarks({ state, before, viewer, model: known(state.model), note: source.note, on }));
    morph(places.changes.firstChild ?? places.changes.appendChild(h("section")), changes.draw({ state, before, now, twin, language: known(state.model)?.target, on }));
    morph(places.lesson.firstChild ?? places.lesson.appendChild(h("section")), drawLesson());
  }

  function drawLesson() {
    return lessons.draw({
      number: state.lesson,
      facts: facts(),
      has: known,
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
      looks_at: lookedAt(),
      last: viewer.act.stops().length - 1,
      micro: view.micro,
      view: view.view,
      measure: view.measure,
      model: state.model,
      pinned: view.pin !== null,
    };
  }
  /** The source word with most of the current step's weight. */
  function lookedAt() {
    const view = { ...viewer.store.state, by: "words" };
    const [heaviestPlace] = heaviest(ribbons(viewer.trace, view), 0.1);
    return names(viewer.trace.source, "words")[heaviestPlace];
  }
  const act_at = () => viewer.act.stops().findLastIndex((step) => step <= viewer.store.state.step);

  async function open(number) {
    const lesson = lessons.LESSONS[number];
    if (!lesson) return;
    const { stage } = lesson;
    state.lesson = number;
    lessons.begin(number);
    asked.state = {};
    const view = { step: 0, view: "alignment", layer: null, head: null, measure: "weights", micro: null, pin: null };
    if (viewer?.store) viewer.act.set({ ...view, ...stage.state, open: stage.open ?? ["map"] });
    else asked.state = { ...stage.state, open: stage.open };
    Object.assign(state, { text: stage.text, model: known(stage.model) ? stage.model : state.model || usual(), changes: stage.changes ?? [], compare: Boolean(stage.compare), part: 0 });
    scrollTo({ top: 0 });
    await renew();
    // Where the lesson stays beside the stage, the drawing that it begins with is brought into sight.
    if (stage.state?.micro === undefined || !matchMedia(BESIDE).matches) return;
    setTimeout(() => host.querySelector(".drawing")?.scrollIntoView({ block: "nearest" })); // once the page is shown
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
    else say(t("ask.empty"));
  }
  function set(changes) {
    Object.assign(state, changes);
    renew();
  }
  /** Let the model read a translation that the reader has written. */
  function given(text) {
    const rest = state.changes.filter((one) => one.type !== "force" && one.type !== "prefix");
    set({ giving: false, changes: text ? [...rest, { type: "force", text }] : rest });
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
    const model = known(params.get("m")) ? params.get("m") : usual();
    const text = params.get("s")?.trim() || (known(model).source === "fr" ? FIRST.text : lessons.exampleOf(known(model).source));
    let wanted = [];
    let broken = false;
    try {
      wanted = JSON.parse(params.get("iv") ?? "[]");
      broken = !wanted.every((one) => changes.TYPES.has(one?.type));
    } catch {
      broken = true;
    }
    if (broken) wanted = [];
    Object.assign(state, { model, text: text.slice(0, MAX_TEXT), changes: wanted, compare: params.get("c") === "1", part: Number(params.get("part") ?? 1) - 1 || 0 });
    return renew(asked.state.step ?? null).then(() => broken && say(t("reason.link")));
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
    /** Take back the last change; false if there is none. */
    undo() {
      if (!state.changes.length) return false;
      set({ changes: state.changes.slice(0, -1) });
      return true;
    },
    /** Translate a sentence by a model, from the beginning. */
    ask: (model, text) => set({ model, text: text.slice(0, MAX_TEXT), changes: [], part: 0, lesson: null }),
    toggleCompare: () => partner() && set({ compare: !state.compare }),
  };
}

/** Where the word of a piece begins in the text. */
function wordStart(target, step) {
  const word = target.words.find((one) => one.pieces.includes(step));
  return word?.start ?? target.letters.length;
}
