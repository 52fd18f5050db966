"""Makes models of `marian-npz/`: small models trained by Marian, and the scores it gives to words.

Run in an environment with pymarian 1.12.42: python tests/golden/make_marian_npz.py NAME...
"""

import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent / "marian-npz"
SUBJECTS = [
    ("le chat", "the cat"),
    ("la souris", "the mouse"),
    ("un chien", "a dog"),
    ("l'oiseau", "the bird"),
]
VERBS = [("dort", "sleeps"), ("mange \"tout\"", "eats \"all\""), ("voit : é", "sees # null"), ("'ici' - ?", "~ 'here' 1")]  # fmt: skip
KEPT = ("model.npz", "model.npz.decoder.yml", "source.yml", "target.yml", "vocab.spm")
BOTH = [
    "train", "--dim-emb", "8", "--mini-batch", "16", "--after-batches", "60", "--learn-rate", "0.02",
    "--cpu-threads", "1", "--workspace", "100", "--seed", "3", "--quiet",
]  # fmt: skip
TRANSFORMER = [
    "--type", "transformer", "--transformer-heads", "2", "--transformer-dim-ffn", "12", "--enc-depth", "1",
    "--dec-depth", "2",
]  # fmt: skip
MODELS = {
    "amun": ["--vocabs", "source.yml", "target.yml", "--type", "amun", "--dim-rnn", "12"],
    "s2s": [
        "--vocabs", "source.yml", "target.yml", "--type", "s2s", "--dim-rnn", "12", "--layer-normalization",
        "--tied-embeddings",
    ],
    "ssru": [
        "--vocabs", "source.yml", "target.yml", "--tied-embeddings", "--transformer-decoder-autoreg", "rnn",
        "--dec-cell", "ssru", *TRANSFORMER,
    ],
    "post": ["--vocabs", "source.yml", "target.yml", "--tied-embeddings", "--transformer-ffn-activation", "swish",
             *TRANSFORMER],
    "pre": [
        "--vocabs", "vocab.spm", "vocab.spm", "--dim-vocabs", "50", "50", "--tied-embeddings-all",
        "--sentencepiece-options=--normalization_rule_name=identity --hard_vocab_limit=false",
        "--transformer-ffn-activation", "relu", "--transformer-preprocess", "n", "--transformer-postprocess", "da",
        "--transformer-postprocess-top", "n", *TRANSFORMER,
    ],
}  # fmt: skip


def main(names):
    choose = random.Random(1)
    pairs = [(*choose.choice(SUBJECTS), *choose.choice(VERBS), *choose.choice(SUBJECTS)) for _ in range(300)]
    pairs = [(" ".join(one[::2]), " ".join(one[1::2])) for one in pairs]
    for name in names:
        options = MODELS[name]
        with tempfile.TemporaryDirectory() as folder:
            write(folder, pairs)
            files = ["--train-sets", "text.fr", "text.en", "--model", "model.npz"]
            subprocess.run(["pymarian", *BOTH, *files, *options], cwd=folder, check=True)
            shown = [*pairs[:4], ("le chat inconnu", "")]
            write(folder, shown)
            sets = [
                "--train-sets",
                "text.fr",
                "text.en",
                "--cpu-threads",
                "1",
                "--workspace",
                "100",
                "--quiet",
            ]
            command = ["pymarian", "score", "--model", "model.npz", *sets, *options[:3], "--word-scores"]
            said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
            scores = [
                list(map(float, line.partition("WordScores=")[2].split())) for line in said.splitlines()
            ]
            out = HERE / name
            out.mkdir(parents=True, exist_ok=True)
            expected = [
                {"source": a, "target": b, "scores": c} for (a, b), c in zip(shown, scores, strict=True)
            ]
            (out / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=1) + "\n")
            for path in Path(folder).iterdir():
                if path.name in KEPT:
                    shutil.copy(path, out / path.name)


def write(folder, pairs):
    for side, name in enumerate(("text.fr", "text.en")):
        (Path(folder) / name).write_text("".join(f"{pair[side]}\n" for pair in pairs))


if __name__ == "__main__":
    main(sys.argv[1:])
