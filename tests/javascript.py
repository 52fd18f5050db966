"""The engine of the page, run by Node: it is asked in JSON and answers in JSON."""

import json
import shutil
import subprocess
from importlib.resources import as_file, files

import pytest

from regard.modelfile import save_model
from regard.trace.live import facts

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="no node to run JavaScript with")

_DRIVER = """
import { readFileSync } from "node:fs";
import { openModel, answer, saved } from "#engine/model";
import { normalize, toOriginal, words } from "#engine/tokenizer";

const asked = JSON.parse(readFileSync(0, "utf8"));
const models = new Map();
async function model({ model: path, facts }) {
  if (!models.has(path)) models.set(path, openModel(new Uint8Array(readFileSync(path)), facts));
  return models.get(path);
}
const KINDS = {
  trace: async (one) => saved(await model(one), one.request),
  open: async (one) => Boolean(await model(one)),
  encode: async (one) => {
    const { source, target } = await model(one);
    return one.texts.map((text) => {
      const length = Array.from(text).length;
      const normalized = normalize(text, { foldQuotes: true });
      const { ids, spans } = source.encode(normalized.characters);
      return {
        text: normalized.characters.join(""),
        ids,
        spans: spans.map((span) => toOriginal(normalized, span, length)),
        decoded: target.decode(ids),
        words: words(text),
      };
    });
  },
};
const answers = [];
for (const one of asked) {
  try {
    answers.push({ value: await KINDS[one.kind](one) });
  } catch (error) {
    answers.push({ error: error.message, stack: error.stack });
  }
}
process.stdout.write(JSON.stringify(answers));
"""


class Node:
    """Runs the engine's modules; they import each other by names that `package.json` explains to Node."""

    def __init__(self, folder):
        self.folder = folder
        with as_file(files("regard.viewer") / "static" / "engine") as engine:
            shutil.copytree(engine, folder / "engine")
        package = {"type": "module", "imports": {"#engine/*": "./engine/*.js"}}
        (folder / "package.json").write_text(json.dumps(package), encoding="utf-8")
        (folder / "driver.js").write_text(_DRIVER, encoding="utf-8")

    def ask(self, *asked):
        """The answers; an error is raised as one."""
        answers = self.answers(*asked)
        for one in answers:
            assert "error" not in one, one["stack"]
        return [one["value"] for one in answers]

    def answers(self, *asked):
        done = subprocess.run(
            [NODE, str(self.folder / "driver.js")],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def saved(self, tracer, name, search=None):
        """What names a model in a request: its file and its facts."""
        path = self.folder / f"{name}.regard"
        if not path.exists():
            save_model(path, tracer.model)
        return {"model": str(path), "facts": facts(tracer.loaded, search)}
