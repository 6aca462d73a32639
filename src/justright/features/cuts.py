"""Where a network is cut: a frozen prefix whose output can be stored, and a suffix that is tuned.

Four kinds, from the most to the least specific:
`ClassTokenCut`   a ViT whose last block `is_covered` by the formulas of `class_token`; stores n and x_0, never forms
                  keys or values.
`LastBlockCut`    any other network of blocks (q/k norm, rotary positions, average pooling); stores its tokens.
`LastStageCut`    conv nets and other networks in stages; stores the feature map that enters the last stage, or the
                  convolutions after it, if there are any.
`Cut`             a network that none of these computes exactly; stores its features and tunes nothing.
"""

from __future__ import annotations

import logging
import threading
from itertools import takewhile
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import conv2d, layer_norm

from justright.features.guarded_timm import (
    Attention,
    BatchNormAct2d,
    Block,
    GluMlp,
    LayerScale,
    Mlp,
    Network,
    SwiGLU,
    VisionTransformer,
)

_log = logging.getLogger(__name__)

HEAD_PARTS = frozenset(
    {"global_pool", "pool", "attn_pool", "fc_norm", "head_drop", "head", "head_dist", "fc", "classifier"}
)
"""Children of timm's models that its `forward_head` runs itself."""

Stored = tuple[Float[Tensor, " batch ..."], ...]  # what crosses the cut: one entry per image, channels on the last axis


class _StopForward(Exception):  # noqa: N818
    """Ends a forward pass at a module, with the arguments of the module."""


_stop = threading.local()  # the module at which a thread stops; hooks stay, because other threads may use the model


def make_stoppable(module: nn.Module) -> None:
    """Let `arguments_at` end a forward pass at this module."""
    module.register_forward_pre_hook(_stop_if_requested, with_kwargs=True)


def _stop_if_requested(module: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    if getattr(_stop, "module", None) is module:
        raise _StopForward(*positional, named)


def arguments_at(model: Network, module: nn.Module, images: Tensor) -> tuple[Any, ...]:
    """Run the model up to a stoppable module: its positional arguments, then its named ones as a dict."""
    _stop.module = module
    try:
        model.forward_features(images)
    except _StopForward as stop:
        return stop.args
    finally:
        _stop.module = None
    raise RuntimeError(f"{type(model).__name__} never runs its last stage")


def is_covered(block: Network) -> bool:
    """Whether the formulas of `class_token` are what this block computes.

    They are not if queries or keys are normed, positions rotate, attention is gated or of another kind, a norm is no
    layer norm, dropout is active, or the MLP mixes tokens.
    """
    if type(block) is not Block or type(block.attn) is not Attention:
        return False
    attention = block.attn
    return (
        all(type(norm) is nn.Identity for norm in (attention.q_norm, attention.k_norm, attention.norm))
        and getattr(attention, "gate", None) is None
        and isinstance(block.norm1, nn.LayerNorm)
        and block.norm1.weight is not None
        and isinstance(block.norm2, nn.LayerNorm)
        and isinstance(block.mlp, Mlp | GluMlp | SwiGLU)
        and all(isinstance(scale, LayerScale | nn.Identity) for scale in (block.ls1, block.ls2))
        and all(type(path) is nn.Identity for path in (block.drop_path1, block.drop_path2))
        and not any(isinstance(part, nn.Dropout) and part.p > 0 for part in block.modules())
        # hooks in the block (LoRA, a probe) have to run
        and not any(part._forward_hooks or part._forward_pre_hooks for part in block.modules())
    )


def block_inputs(
    block: Network, tokens: Float[Tensor, "batch tokens dim"]
) -> tuple[Float[Tensor, "batch tokens dim"], Float[Tensor, "batch dim"]]:
    """The inputs of `class_token`: n_i for every token i, and x_0."""
    norm = block.norm1
    return layer_norm(tokens, norm.normalized_shape, eps=norm.eps), tokens[:, 0]


def class_token(
    block: Network, n: Float[Tensor, "batch tokens dim"], x_0: Float[Tensor, "batch dim"]
) -> Float[Tensor, "batch dim"]:
    """The output of the last block of a ViT at the class token: exact, at a small part of the cost.

    Only the class token's output is read, so each head has one query, and keys and values need not be formed. Letters:
    x_i token i entering the block (i = 0 is the class token), n_i its layer norm before the affine part g, b of
    `norm1`, heads h = 1..H of width e, W_q, W_k, W_v and biases from `qkv`, W_o from `proj`, layer scales s1, s2:

        c    = g * n_0 + b
        q_h  = W_q,h c + b_q,h
        r_h  = g * (W_k,h^T q_h) / sqrt(e)
        a_h  = softmax_i(r_h . n_i)          the part of k_i from b and b_k is the same for every i and cancels
        m_h  = g * sum_i a_h,i n_i + b       since the a_h,i sum to 1
        o_h  = W_v,h m_h + b_v,h
        y    = x_0 + s1 * (W_o [o_1 .. o_H] + b_o)
        out  = y + s2 * MLP(norm2(y))

    Every parameter receives its exact gradient; that of b_k is zero, as it is in the ordinary block.
    """
    attention = block.attn
    n_heads, width, dim = attention.num_heads, attention.head_dim, n.shape[-1]
    g, b = block.norm1.weight, block.norm1.bias
    w_q, w_k, w_v = attention.qkv.weight.view(3, n_heads, width, dim)
    c = _affine(n[:, 0], g, b)
    q = torch.einsum("bd,hed->bhe", c, w_q)
    if attention.qkv.bias is not None:
        b_q, _, b_v = attention.qkv.bias.view(3, n_heads, width)
        q = q + b_q
    r = g * torch.einsum("bhe,hed->bhd", q, w_k) * attention.scale
    a = torch.bmm(r, n.transpose(1, 2)).softmax(dim=-1)  # (batch, heads, tokens)
    m = _affine(torch.bmm(a, n), g, b)  # (batch, heads, dim)
    o = torch.einsum("bhd,hed->bhe", m, w_v)
    if attention.qkv.bias is not None:
        o = o + b_v
    y = x_0 + block.ls1(attention.proj(o.flatten(1)))
    return y + block.ls2(block.mlp(block.norm2(y)))


def _affine(n: Tensor, g: Tensor, b: Tensor | None) -> Tensor:
    return g * n if b is None else g * n + b


def uncut_features(model: Network, images: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch dim"]:
    """The feature as the uncut network computes it."""
    return model.forward_head(model.forward_features(images), pre_logits=True)


class Cut:
    """Prefix and suffix of one network. Here, for a network that no subclass reproduces, all is prefix.

    Gradients and modes are set by the caller.
    """

    # a name for each stored tensor; the first is the large one, which a bank may store in half precision
    names: tuple[str, ...] = ("feature",)
    tuned: tuple[str, ...] = ()  # the modules that training changes, by path in the network
    ends_in_norm = False  # whether features leave the network through a norm of their own or as pooled activations
    is_staged = False  # whether it is a conv net or similar, which some runtimes and memory layouts make faster

    def __init__(self, model: Network):
        self.model = model

    def prefix(self, images: Float[Tensor, "batch 3 height width"]) -> Stored:
        """The frozen part."""
        return (uncut_features(self.model, images),)

    def suffix(self, stored: Stored) -> Float[Tensor, "batch dim"]:
        """The tuned part, the frozen final norm and the pooling."""
        return stored[0]


class ClassTokenCut(Cut):
    """The exact class-token-only last block, then the final norm."""

    names = ("n", "x_0")
    ends_in_norm = True

    def __init__(self, model: Network):
        super().__init__(model)
        self.tuned = (f"blocks.{len(model.blocks) - 1}",)

    @staticmethod
    def fits(model: Network) -> bool:
        """A plain ViT that reads out its class token and whose last block `is_covered`."""
        return bool(
            type(model) is VisionTransformer
            and model.has_class_token
            and model.global_pool == "token"
            and model.attn_pool is None
            and type(model.fc_norm) is nn.Identity
            and len(model.blocks) > 0
            and is_covered(model.blocks[-1])
        )

    def prefix(self, images: Float[Tensor, "batch 3 height width"]) -> Stored:
        """n_i of all tokens and x_0."""
        model = self.model
        tokens = model.norm_pre(model.patch_drop(model._pos_embed(model.patch_embed(images))))
        return block_inputs(model.blocks[-1], model.blocks[:-1](tokens))

    def suffix(self, stored: Stored) -> Float[Tensor, "batch dim"]:
        """The class token after block and final norm."""
        return self.model.norm(class_token(self.model.blocks[-1], *stored))


class LastBlockCut(Cut):
    """The ordinary last block, then whatever norm and pooling the network has."""

    names = ("tokens",)
    ends_in_norm = True

    def __init__(self, model: Network):
        super().__init__(model)
        self.tuned = (f"blocks.{len(model.blocks) - 1}",)
        self._arguments: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
        make_stoppable(model.blocks[-1])

    @staticmethod
    def fits(model: Network) -> bool:
        """A network of blocks with one norm after them."""
        has_blocks = isinstance(getattr(model, "blocks", None), nn.Sequential | nn.ModuleList)
        return has_blocks and all(hasattr(model, name) for name in ("norm", "forward_head", "patch_embed"))

    def prefix(self, images: Float[Tensor, "batch 3 height width"]) -> Stored:
        """The tokens that enter the last block."""
        # other arguments of the block (rotary positions) depend on the image size only: kept for the suffix
        tokens, *more, named = arguments_at(self.model, self.model.blocks[-1], images)
        self._arguments = tuple(more), named
        return (tokens,)

    def suffix(self, stored: Stored) -> Float[Tensor, "batch dim"]:
        """The feature after block, norm and pooling."""
        model = self.model
        positional, named = self._arguments
        return model.forward_head(model.norm(model.blocks[-1](stored[0], *positional, **named)), pre_logits=True)


def normed_conv(conv: nn.Conv2d, norm: nn.BatchNorm2d, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch ..."]:
    """A convolution and its batch norm in eval mode as one convolution, then the activation of the norm.

        y = conv(x, s W) + s (b - mean) + beta,    s = g / sqrt(var + eps)

    The parameters of both stay trainable. Two passes over the activations are saved, forward and backward.
    """
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = torch.rsqrt(norm.running_var + norm.eps) * norm.weight
    weight = conv.weight * scale[:, None, None, None]
    bias = (-norm.running_mean if conv.bias is None else conv.bias - norm.running_mean) * scale + norm.bias
    x = conv2d(x, weight, bias, conv.stride, conv.padding, conv.dilation, conv.groups)
    return norm.act(norm.drop(x)) if isinstance(norm, BatchNormAct2d) else x


class LastStageCut(Cut):
    """The last stage that timm lists for the network, the layers after it, then pooling.

    Where such layers are more than norms (EfficientNet, MobileNetV2) they alone are the last stage here: tuning them
    was as good as tuning both, at a third of the cost (docs/research/decisions.md).
    """

    names = ("map",)
    is_staged = True

    def __init__(self, model: Network):
        super().__init__(model)
        path: str = model.feature_info[-1]["module"]
        self.tail = _modules_after(model, path)
        if any(parameter.ndim > 1 for module in self.tail.values() for parameter in module.parameters()):
            path = next(iter(self.tail))
            self.tail = _modules_after(model, path)
        self.stage = model.get_submodule(path)
        make_stoppable(self.stage)
        # a final norm stays frozen, as in a ViT
        self.tuned = (path, *(name for name, module in self.tail.items() if not isinstance(module, nn.LayerNorm)))
        self.is_channels_first = getattr(model, "output_fmt", "NCHW") == "NCHW"
        conv, norm = self.stage, next(iter(self.tail.values()), None)
        self.norm: nn.BatchNorm2d | None = None  # of a plain convolution: `normed_conv` computes both
        if type(conv) is nn.Conv2d and conv.padding_mode == "zeros" and type(norm) in (nn.BatchNorm2d, BatchNormAct2d):
            assert isinstance(norm, nn.BatchNorm2d)
            self.norm = norm if norm.affine else None
        if self.norm is not None and isinstance(act := getattr(norm, "act", None), nn.Hardtanh):
            act.inplace = False  # in place, torch would first copy the whole input for the gradient
        is_averaged = getattr(getattr(model, "global_pool", None), "pool_type", "") == "avg"
        self.is_averaged = is_averaged and self.is_channels_first

    @staticmethod
    def fits(model: Network) -> bool:
        """A network whose stages timm lists."""
        return bool(getattr(model, "feature_info", None)) and hasattr(model, "forward_head")

    def prefix(self, images: Float[Tensor, "batch 3 height width"]) -> Stored:
        """The feature map that enters the last stage."""
        x: Tensor = arguments_at(self.model, self.stage, images)[0]
        return (x.permute(0, 2, 3, 1) if self._is_turned(x) else x,)

    def suffix(self, stored: Stored) -> Float[Tensor, "batch dim"]:
        """The pooled feature."""
        x = stored[0]
        x = x.permute(0, 3, 1, 2) if self._is_turned(x) else x
        tail = list(self.tail.values())
        if self.norm is None:
            x = self.stage(x)
        else:
            x, tail = normed_conv(self.stage, self.norm, x), tail[1:]
        for module in tail:
            x = module(x)
        if self.is_averaged:  # here, because the network's pooling would write the gradient to every cell of the map
            x = x.sum((2, 3), keepdim=True) / (x.shape[2] * x.shape[3])
        return self.model.forward_head(x, pre_logits=True)

    def _is_turned(self, x: Tensor) -> bool:
        return self.is_channels_first and x.ndim == 4


def _modules_after(model: Network, path: str) -> dict[str, nn.Module]:
    """The modules between a stage and the head, in the order of registration."""
    after: dict[str, nn.Module] = {}
    while path:
        parent, _, name = path.rpartition(".")
        children = list(model.get_submodule(parent).named_children())
        later = children[[child for child, _ in children].index(name) + 1 :]
        if not parent:
            later = list(takewhile(lambda child: child[0] not in HEAD_PARTS, later))
        after |= {f"{parent}.{child}" if parent else child: module for child, module in later}
        path = parent
    return after


def cut(model: Network, images: Float[Tensor, "batch 3 height width"]) -> Cut:
    """The most specific cut that reproduces a network in eval mode, checked on images unless known to be exact."""
    if ClassTokenCut.fits(model):
        return ClassTokenCut(model)
    with torch.no_grad():
        expected = uncut_features(model, images)
        for kind in (LastBlockCut, LastStageCut):
            if kind.fits(model):
                candidate = kind(model)
                if _reproduces(candidate, images, expected):
                    return candidate
    _log.warning("%s cannot be cut before its last stage: its features stay frozen", type(model).__name__)
    return Cut(model)


def _reproduces(candidate: Cut, images: Tensor, expected: Tensor) -> bool:
    try:
        features = candidate.suffix(candidate.prefix(images))
    except (RuntimeError, TypeError, AttributeError, IndexError, ValueError):
        return False  # modules run in another order, or pass on more than one tensor
    return features.shape == expected.shape and torch.allclose(features, expected, rtol=1e-3, atol=1e-4)
