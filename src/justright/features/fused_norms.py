"""Batch norms of the tuned part, done by the convolutions before them: the same network and gradient, in less time.

The statistics of a batch norm stay as they are here, so it is an affine map of each channel, and the convolution before
it can do it on the way. Other than in folding.py both stay trainable: the product is made anew at each call.

    s = g / sqrt(var + eps),   y = conv(x, s W) + s (b - mean) + beta

What a step saves is going through the activations twice more, forward and backward. A convolution of one pixel is a
product of matrices, and done as one: forward and backward are an eighth to a quarter quicker so on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import conv2d, linear

from justright.features.guarded_timm import BatchNormAct2d, Network


class NormedConv(nn.Conv2d):
    """A convolution and the batch norm that reads it, as one."""

    norm: tuple[
        nn.BatchNorm2d
    ]  # in a tuple: it is a module of its own place, and its parameters have their names there

    def forward(self, x: Tensor) -> Tensor:
        """What the batch norm would give."""
        (norm,) = self.norm
        assert norm.running_mean is not None
        assert norm.running_var is not None
        scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
        bias = -norm.running_mean if self.bias is None else self.bias - norm.running_mean
        weight = self.weight * scale[:, None, None, None]
        bias = bias * scale + norm.bias
        if self.kernel_size == self.stride == (1, 1) and self.padding == (0, 0) and self.groups == 1:
            return linear(x.permute(0, 2, 3, 1), weight.flatten(1), bias).permute(0, 3, 1, 2)
        return conv2d(x, weight, bias, self.stride, self.padding, self.dilation, self.groups)


class DoneNorm(nn.BatchNorm2d):
    """A batch norm whose convolution has done its work."""

    def forward(self, x: Tensor) -> Tensor:
        """Nothing is left to do."""
        return x


class DoneNormAct(BatchNormAct2d):
    """A done norm of timm's kind, with the activation that it carries."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation alone; the norm is in the layer before."""
        return self.act(self.drop(x))


DONE: dict[type, type] = {nn.BatchNorm2d: DoneNorm, BatchNormAct2d: DoneNormAct}


def fuse_norms(model: Network, tuned: Sequence[str], images: Float[Tensor, "batch 3 height width"]) -> None:
    """Have the convolutions of the tuned modules do their batch norms; `images` are run once to see which do.

    Modules keep their places and their parameters, so a state dict is what it was.
    """
    for conv_path, norm_path in norm_pairs(model, images):
        conv, norm = model.get_submodule(conv_path), model.get_submodule(norm_path)
        is_tuned = any(f"{conv_path}.".startswith(f"{path}.") for path in tuned)
        if is_tuned and type(conv) is nn.Conv2d and conv.padding_mode == "zeros" and type(norm) in DONE and norm.affine:
            conv.__class__ = NormedConv
            conv.__dict__["norm"] = (norm,)
            norm.__class__ = DONE[type(norm)]
            if isinstance(getattr(norm, "act", None), nn.Hardtanh):
                norm.act.inplace = False  # in place torch copies its whole input first, for the gradient


def plain_again(conv: nn.Conv2d) -> None:
    """Undo it for a convolution whose batch norm is about to go."""
    if conv.__dict__.pop("norm", None) is not None:
        conv.__class__ = nn.Conv2d


def norm_pairs(model: Network, images: Tensor) -> list[tuple[str, str]]:
    """Paths of convolutions and of the batch norms that read exactly what they give."""
    made_by: dict[int, str] = {}
    given: list[Tensor] = []  # kept, because an id means nothing once its tensor is gone
    pairs: list[tuple[str, str]] = []
    hooks = []
    for path, module in model.named_modules():
        if isinstance(module, nn.Conv2d):

            def made(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor, path: str = path) -> None:
                made_by[id(output)] = path
                given.append(output)

            hooks.append(module.register_forward_hook(made))
        elif isinstance(module, nn.BatchNorm2d):

            def read(module: nn.Module, inputs: tuple[Tensor, ...], path: str = path) -> None:
                if (conv := made_by.get(id(inputs[0]))) is not None:
                    pairs.append((conv, path))

            hooks.append(module.register_forward_pre_hook(read))
    try:
        with torch.inference_mode():
            model.forward_features(images)
    finally:
        for hook in hooks:
            hook.remove()
    convs, norms = [conv for conv, _ in pairs], [norm for _, norm in pairs]
    # a module that runs twice serves two masters
    return [(c, n) for c, n in pairs if convs.count(c) == 1 and norms.count(n) == 1]
