// The page: its language, its look, and a viewer for each trace. The texts and traces stand in the page itself.

import { h, morph, printable } from "#app/dom";
import { icon } from "#app/icons";
import { createStore, memory } from "#app/store";
import { setStrings, setLanguage, languages, t } from "#app/i18n";
import { mount } from "#app/viewer";
import { setLessons } from "#app/lessons";
import { inside, served } from "#app/source";
import * as live from "#app/live";
import * as hash from "#app/hash";
import * as keys from "#app/keys";
import * as help from "#app/help";
import * as pages from "#app/pages";

const SIDE_BY_SIDE = 3; // traces; of more, one is shown at a time
const THEMES = ["auto", "light", "dark"];
const json = (id) => JSON.parse(document.getElementById(id).textContent);
const oneOf = (all, ...wanted) => wanted.find((one) => all.includes(one)) ?? all[0];

export async function start() {
  setStrings(json("strings"));
  const asked = hash.read();
  const store = createStore({
    language: oneOf(
      languages(),
      asked.get("lang"),
      memory.get("language"),
      ...navigator.languages.map((one) => one.split("-")[0]),
    ),
    theme: oneOf(THEMES, asked.get("theme"), memory.get("theme")),
    letters: memory.get("letters") !== "off",
    route: hash.routeOf(asked),
  });
  const root = document.getElementById("app");
  const bar = root.appendChild(h("div"));
  const entries = document.getElementById("traces") ? json("traces") : null;
  const main = root.appendChild(h("main", { class: entries?.length > 1 ? "several" : entries ? null : "live" }));
  const other = root.appendChild(h("main", { hidden: true }));
  let dialog = root.appendChild(h("dialog"));
  const viewers = [];
  let used = 0;
  let chooser = null;
  let drawChooser = () => {};
  let desk = null; // what asks an engine, if there is one
  let ready = false; // until then the address says what is to be shown, not what is

  const app = {
    store,
    active: () => desk?.viewer ?? (viewers[used]?.store ? viewers[used] : viewers.find((viewer) => viewer.store)),
    compare: () => desk?.toggleCompare(),
    undo: () => desk?.undo() ?? false,
    nextTheme() {
      const theme = THEMES[(THEMES.indexOf(store.state.theme) + 1) % THEMES.length];
      memory.set("theme", theme);
      store.set({ theme });
    },
    nextLanguage() {
      const all = languages();
      const language = all[(all.indexOf(store.state.language) + 1) % all.length];
      memory.set("language", language);
      store.set({ language });
    },
    help: () => dialog.showModal(),
    go(route) {
      store.set({ route });
      scrollTo({ top: 0 });
      if (route) other.querySelector("h2")?.focus({ preventScroll: true });
    },
  };
  const page = pages.create({
    version: json("about").version,
    app,
    ask: (model, text) => (app.go(null), desk?.ask(model, text)),
    redraw: () => redraw(),
  });
  const remember = () =>
    ready &&
    hash.write(
      store.state,
      desk ? [desk.viewer?.store.state] : viewers.map((viewer) => viewer.store?.state),
      desk?.params(),
    );

  const redraw = () => {
    const { language, theme, letters, route } = store.state;
    setLanguage(language);
    document.documentElement.lang = language;
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    morph(bar, drawBar(app, language, theme, route));
    main.hidden = Boolean(route);
    if (chooser) chooser.hidden = main.hidden;
    other.hidden = !route;
    if (route) page.draw(other, route);
    const fresh = help.draw({
      letters,
      onLetters(on) {
        memory.set("letters", on ? "on" : "off");
        store.set({ letters: on });
      },
      onClose: () => dialog.close(),
    });
    dialog = morph(dialog, fresh);
    viewers.forEach((viewer, number) => {
      viewer.host.setAttribute("aria-label", t("trace_n", { n: number + 1 }));
      viewer.redraw();
    });
    drawChooser();
    desk?.viewer?.redraw();
    desk?.other?.redraw();
    desk?.draw();
    remember();
  };

  redraw();
  if (!entries) {
    setLessons(json("lessons"));
    const state = hash.stateOf(asked, 0);
    const open = asked.get("open");
    if (open !== null) state.open = open.split(",").filter(Boolean);
    const source = document.getElementById("models") ? inside(json("models")) : served();
    page.source = source;
    try {
      desk = await live.start({ app, main, asked: { params: asked, state }, remember, source });
    } catch (error) {
      main.append(h("p", { class: "panel refusal", role: "alert" }, t("reason.gone")));
      throw error;
    } finally {
      document.body.classList.add("ready");
    }
    document.addEventListener("answered", () => setTimeout(() => desk.draw()));
  }
  if (entries?.length > SIDE_BY_SIDE) chooser = root.insertBefore(h("nav"), main);
  const choose = (number) => {
    used = number;
    viewers.forEach((viewer, one) => (viewer.host.hidden = one !== number));
    viewers[number].redraw();
    drawChooser();
  };
  drawChooser = () => chooser && morph(chooser, list(entries, used, choose));
  for (const [number, entry] of (entries ?? []).entries()) {
    const host = main.appendChild(h("article", { class: "viewer" }));
    for (const event of ["focusin", "pointerdown"]) host.addEventListener(event, () => (used = number));
    viewers.push(await mount(host, entry, { id: `trace${number}`, state: hash.stateOf(asked, number) }));
    viewers[number].store?.listen(remember);
  }
  if (chooser) {
    main.classList.remove("several");
    choose(0);
  }
  document.body.classList.add("ready");
  ready = true;
  // A viewer cannot measure what is not shown yet.
  redraw();
  store.listen(redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  keys.listen(app);
  addEventListener("hashchange", () => {
    const params = hash.read();
    store.set({
      language: oneOf(languages(), params.get("lang"), store.state.language),
      theme: oneOf(THEMES, params.get("theme"), store.state.theme),
      route: hash.routeOf(params),
    });
    if (hash.routeOf(params) && !params.has("s")) return; // a link within the page
    desk?.read(params);
    viewers.forEach((viewer, number) =>
      viewer.act?.set({ layer: null, head: null, pin: null, ...hash.stateOf(params, number) }),
    );
  });
}

/** The sentences of a page that has many, one of which is shown. */
function list(entries, used, choose) {
  return h(
    "nav",
    { class: "sentences-of", "aria-label": t("chooser") },
    entries.map(({ trace }, number) =>
      h(
        "button",
        { type: "button", "aria-current": number === used ? "true" : null, onclick: () => choose(number) },
        h("bdi", { lang: trace.model?.source_language }, printable(trace.source?.text ?? "?")),
        " ",
        h("small", null, printable(trace.model?.label ?? "")),
      ),
    ),
  );
}

function drawBar(app, language, theme, route) {
  const other = languages().find((one) => one !== language);
  return h(
    "div",
    { class: "bar", role: "banner" },
    h("h1", { class: "brand" }, h("span", { class: "eye", "aria-hidden": "true" }), "regard"),
    h("span", { class: "motto" }, t("motto")),
    h(
      "nav",
      { class: "pages", "aria-label": t("pages") },
      [null, "evaluate", "about"].map((one) =>
        h("a", { href: `#/${one ?? ""}`, "aria-current": one === route ? "page" : null, onclick: (event) => (event.preventDefault(), app.go(one)) }, t(`page.${one ?? "main"}`)),
      ),
    ),
    h(
      "div",
      { class: "buttons" },
      h(
        "button",
        {
          type: "button",
          class: "language",
          onclick: app.nextLanguage,
          title: t("language"),
        },
        h("span", { lang: other }, t(`language.${other}`)),
      ),
      h(
        "button",
        { type: "button", class: "theme", onclick: app.nextTheme, title: t("theme") },
        icon("theme"),
        h("span", null, t(`theme.${theme}`)),
      ),
      h(
        "button",
        {
          type: "button",
          class: "round ask",
          onclick: app.help,
          "aria-label": t("help.title"),
          title: t("help.title"),
        },
        "?",
      ),
    ),
  );
}
