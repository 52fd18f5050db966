"""What a run was given that its user did not ask for, a line each: said before preparation. No torch."""

from regard.model.presets import PAPERS, smaller_than_paper
from regard.training.recipes import RunOptions
from regard.training.request import TrainRequest
from regard.training.verdict import Direction


def choices_told(
    request: TrainRequest, preset_name: str, options: RunOptions, direction: Direction
) -> list[str]:
    """Return what was chosen for a run that begins, and how to choose otherwise."""
    lines = []
    resized = preset_name in PAPERS and request.size == "laptop"
    if resized and (smaller := smaller_than_paper(preset_name, options.model)):
        lines.append(f"{preset_name} at a laptop's size: {smaller}; --size paper for the paper's")
    if preset_name == "regard-quick" and request.preset is None and request.start is None:
        lines.append(
            "for a short time: regard-quick, a small recurrent model, with vocabulary "
            f"{options.tokenizer.vocab_size:,}; --preset and --vocab for others"
        )
    if direction.bundled_model:
        lines.append(
            f"`--from {direction.bundled_model}` with another --out would start from a trained model, and "
            "needs less time"
        )
    return lines
