"""What training makes small: the smoothed loss of a batch, and R-Drop's disagreement of two passes,
or the error of an attention that is taught to align.
"""

import numpy as np
import torch
from torch.nn import functional

from regard.contract import Batch
from regard.model.build import Model
from regard.model.engine import batch_loss, forced_logits
from regard.model.loss import Loss
from regard.model.noise import Noise
from regard.training.guide import Guide, Looks
from regard.vocabulary import PAD


def objective(
    model: Model, batch: Batch, noise: Noise, smoothing: float, r_drop: float, guide: Guide | None = None
) -> Loss:
    """Return the loss of a batch, summed over its real target tokens."""
    if guide is not None:  # without R-Drop: `recipes` sees to it
        looks = Looks(guide.reading)
        loss = batch_loss(model, batch, noise, smoothing, looks)
        return Loss(loss.smoothed + guide.loss(looks.weights_BTS, batch), loss.nll)
    if r_drop == 0:
        return batch_loss(model, batch, noise, smoothing)
    return _r_drop_loss(model, batch, noise, smoothing, r_drop)


def _r_drop_loss(model: Model, batch: Batch, noise: Noise, smoothing: float, weight: float) -> Loss:
    """Return the mean loss of two passes plus `weight` times their disagreement (Liang et al. 2021, eq. 4).

    The two passes are one of the batch put under itself: dropout differs from row to row. The disagreement
    is the mean of the two Kullback-Leibler divergences. The paper adds the losses; here they are averaged,
    so that loss and rate mean the same with and without it, and `weight` is the paper's alpha.
    """
    log_prob_2BTV = functional.log_softmax(forced_logits(model, _twice(batch), noise), dim=-1)
    target_BT = torch.from_numpy(np.ascontiguousarray(batch.target_out_BT)).to(log_prob_2BTV.device)
    real_BT = target_BT != PAD
    first_MV, second_MV = (half[real_BT] for half in log_prob_2BTV.chunk(2))
    target_M1 = target_BT[real_BT][:, None]
    nll = -(first_MV.gather(1, target_M1) + second_MV.gather(1, target_M1)).sum() / 2
    uniform = -(first_MV.mean(dim=1) + second_MV.mean(dim=1)).sum() / 2
    gap_MV = first_MV - second_MV
    disagreement = ((first_MV.exp() - second_MV.exp()) * gap_MV).sum() / 2
    smoothed = (1 - smoothing) * nll + smoothing * uniform + weight * disagreement
    return Loss(smoothed, nll.detach())


def _twice(batch: Batch) -> Batch:
    return Batch(
        np.concatenate([batch.source_BS] * 2),
        np.concatenate([batch.forced_in_BT] * 2),
        None,
        np.concatenate([batch.pairs_B] * 2),
        None if batch.features_BSF is None else np.concatenate([batch.features_BSF] * 2),
    )
