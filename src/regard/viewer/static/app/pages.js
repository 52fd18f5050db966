// The pages beside the main screen: scores and about. What the cards of models tell is fetched when it is first shown.

import { h, morph } from "#app/dom";
import { t } from "#app/i18n";
import * as about from "#app/about";
import * as scores from "#app/scores";

/** Draws `route`. `source` is what knows the models, null in a page that has traces only. */
export function create({ version, app, ask, redraw }) {
  const state = { sheet: null, bin: null, opened: null, error: null };
  let models = null; // with their cards
  let asked = false;
  const on = async ({ file, ask: wanted, ...changes }) => {
    if (wanted) return ask(wanted.model, wanted.text);
    Object.assign(state, changes, { error: null });
    if (file)
      try {
        state.opened = await scores.read(file);
        Object.assign(state, { sheet: "opened", bin: null });
      } catch {
        state.error = t("scores.wrong", { file: file.name });
      }
    redraw();
  };
  const page = {
    source: null,
    draw(host, route) {
      if (page.source && !asked) {
        asked = true;
        page.source.cards().then((found) => ((models = found), redraw()), () => ((state.error = t("reason.gone")), redraw()));
      }
      const has = (name) => Boolean(models?.some((model) => model.name === name));
      const drawn =
        route === "about"
          ? about.draw({ version, models, asked: page.source?.asked ?? "nobody", help: app.help })
          : scores.draw({ models: page.source ? models ?? [] : null, state, on, has });
      morph(host.firstChild ?? host.appendChild(h("article")), drawn);
    },
  };
  return page;
}
