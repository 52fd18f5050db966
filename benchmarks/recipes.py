"""Which recipe is best after equal CPU time: batch size, rate, averaging, judged by validation loss and BLEU.

    python benchmarks/recipes.py train.en train.de val.en val.de --seconds 1200 --set batch.batch_tokens=2048

One variant a call, on one thread, so that two can run side by side on two cores. The learning rate follows the
share of the CPU time gone by. Four times on the way, loss and greedy BLEU are printed for the weights as they
are and for their average.
"""

import argparse
import tempfile
import time
from itertools import islice
from pathlib import Path

import torch

from regard.cli.settings import read_sections
from regard.contract import Floats
from regard.corpus.batches import Batches, Share, resample
from regard.corpus.read import open_corpus, sample_pairs
from regard.corpus.store import build_store
from regard.evaluation.scores import score
from regard.loaded import Loaded
from regard.model.build import build_model, export_arrays
from regard.model.engine import batch_loss
from regard.model.noise import Noise
from regard.runtime.build import build_engine
from regard.text.tokenizer import TokenizerPair
from regard.training.objective import objective
from regard.training.optimise import Place, make_average, make_optimiser, rate_factor
from regard.training.recipes import effective_options
from regard.translate.translator import Translator


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs=4, type=Path)
    parser.add_argument("--preset", default="regard-small")
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    train, valid = open_corpus(arguments.files[:2]), open_corpus(arguments.files[2:])
    pairs = sample_pairs(train.pairs(), 100_000)
    said = read_sections(arguments.set, {"train": {"seconds": arguments.seconds}})
    num_words = sum(len(pair.source.split()) + len(pair.target.split()) for pair in pairs)
    options = effective_options(arguments.preset, num_words, said, seed=1)
    tokenizers = TokenizerPair.learn(
        [pair.source for pair in pairs], [pair.target for pair in pairs], options.tokenizer
    )
    with tempfile.TemporaryDirectory() as folder:
        stores = [
            build_store(corpus.pairs(), tokenizers, Path(folder) / name)
            for name, corpus in (("train", train), ("valid", valid))
        ]
        training, held_out = (Batches([Share(store)], options.batch, seed=1) for store in stores)
        sizes = tokenizers.source.vocab_size, tokenizers.target.vocab_size
        model = build_model(options.model, *sizes)
        optimiser, average = (
            make_optimiser(model, options.train.optimiser),
            make_average(model, options.train.average),
        )

        def judge(share: float) -> None:
            nll = num = 0.0
            with torch.no_grad():
                for _, batch in islice(held_out.iterate(), held_out.num_batches(0)):
                    nll += batch_loss(model, batch, None, 0.0).nll.item()
                    num += batch.num_target_tokens
            arrays: dict[str, Floats] = export_arrays(model)
            said = Translator(Loaded.with_engine(build_engine(model.options, arrays), tokenizers)).translate(
                [pair.source for pair in valid.pairs()], beam_size=1
            )
            bleu = score([one.text for one in said], [pair.target for pair in valid.pairs()]).bleu
            print(
                f"{share:.2f}  update {step:6,}  {nll / num:.4f} nats per piece  BLEU {bleu:.2f}", flush=True
            )

        start, judged = time.process_time(), 0.25
        for step, (position, batch) in enumerate(training.iterate(), 1):
            share = (time.process_time() - start) / arguments.seconds
            if share >= judged or share >= 1:
                paused = time.process_time()
                judge(share)
                own = [parameter.detach().clone() for parameter in model.parameters()]
                average.at_validation()
                with torch.no_grad():
                    torch._foreach_copy_(list(model.parameters()), list(average.weights()))
                print("averaged: ", end="")
                judge(share)
                with torch.no_grad():
                    torch._foreach_copy_(list(model.parameters()), own)
                start += time.process_time() - paused
                judged += 0.25
            if share >= 1:
                break
            factor = rate_factor(options.train.schedule, Place(step, float(position.epoch), share))
            for group in optimiser.param_groups:
                group["lr"] = options.train.optimiser.rate * factor
            if options.train.subword_sampling:
                batch = resample(batch, tokenizers, options.train.subword_sampling, step)
            optimiser.zero_grad(set_to_none=True)
            loss = objective(
                model, batch, Noise(1, step), options.train.label_smoothing, options.train.r_drop
            )
            (loss.smoothed / batch.num_target_tokens).backward()
            if options.train.clip_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), options.train.clip_norm)
            optimiser.step()
            average.after_update(step)


if __name__ == "__main__":
    main()
