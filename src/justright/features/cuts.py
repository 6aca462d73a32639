"""Where a network is cut: a frozen prefix whose output can be stored, and a suffix that is tuned.

Four ways, from the most to the least known:
`ClassTokenCut`   a ViT whose last block `last_block` covers; stores n and x_0, never forms keys or values.
`LastBlockCut`    any other network of blocks (q/k norm, rotary positions, average pooling); stores its tokens.
`LastStageCut`    conv nets and other networks in stages; stores the feature map that enters the last stage, or the
                  convolutions after it, where there are some.
`Cut`             a network that none of these computes faithfully; stores its features and tunes nothing.
"""

from __future__ import annotations

import logging
from itertools import takewhile
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from justright.features.early_stop import arguments_at, make_stoppable
from justright.features.guarded_timm import Network, VisionTransformer
from justright.features.last_block import block_inputs, class_token, is_covered

_log = logging.getLogger(__name__)

HEAD_PARTS = frozenset(
    {"global_pool", "pool", "attn_pool", "fc_norm", "head_drop", "head", "head_dist", "fc", "classifier"}
)
"""Children of timm's models that its `forward_head` runs itself."""

Stored = tuple[Float[Tensor, " batch ..."], ...]  # what crosses the cut: an entry an image, channels on the last axis


def uncut_features(model: Network, images: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch dim"]:
    """The feature as the uncut network computes it."""
    return model.forward_head(model.forward_features(images), pre_logits=True)


class Cut:
    """Prefix and suffix of one network, as a network that no subclass computes faithfully has them: all is prefix.

    Gradients and modes are the caller's business.
    """

    # a name for each stored tensor; the first is the large one, which a bank may keep in fewer bits
    names: tuple[str, ...] = ("feature",)
    tuned: tuple[str, ...] = ()  # the modules that training changes, by path in the network
    ends_in_norm = False  # whether features leave the network through a norm of their own or as pooled activations
    is_staged = False  # whether it is a conv net or the like, which some runtimes and memory layouts make faster

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
        """A plain ViT that reads out its class token and whose last block is the described one."""
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
        """Blocks in a row, and one norm after them."""
        has_blocks = isinstance(getattr(model, "blocks", None), nn.Sequential | nn.ModuleList)
        return has_blocks and all(hasattr(model, name) for name in ("norm", "forward_head", "patch_embed"))

    def prefix(self, images: Float[Tensor, "batch 3 height width"]) -> Stored:
        """The tokens that enter the last block."""
        # what else the block is given (rotary positions) depends on the image size only: kept for the suffix
        tokens, *more, named = arguments_at(self.model, self.model.blocks[-1], images)
        self._arguments = tuple(more), named
        return (tokens,)

    def suffix(self, stored: Stored) -> Float[Tensor, "batch dim"]:
        """The feature after block, norm and pooling."""
        model = self.model
        positional, named = self._arguments
        return model.forward_head(model.norm(model.blocks[-1](stored[0], *positional, **named)), pre_logits=True)


class LastStageCut(Cut):
    """The last stage that timm lists for the network, the layers after it, then pooling.

    Where such layers are more than norms (EfficientNet, MobileNetV2) they alone are the last stage here: tuning them
    was as good as tuning both, at a third of the cost (docs/decisions.md).
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

    @staticmethod
    def fits(model: Network) -> bool:
        """A network whose stages timm lists."""
        return bool(getattr(model, "feature_info", None)) and hasattr(model, "forward_head")

    def prefix(self, images: Float[Tensor, "batch 3 height width"]) -> Stored:
        """The feature map that enters the last stage."""
        x: Tensor = arguments_at(self.model, self.stage, images)[0]
        return (x.permute(0, 2, 3, 1) if self._turns(x) else x,)

    def suffix(self, stored: Stored) -> Float[Tensor, "batch dim"]:
        """The pooled feature."""
        x = stored[0]
        x = self.stage(x.permute(0, 3, 1, 2) if self._turns(x) else x)
        for module in self.tail.values():
            x = module(x)
        return self.model.forward_head(x, pre_logits=True)

    def _turns(self, x: Tensor) -> bool:
        return self.is_channels_first and x.ndim == 4


def _modules_after(model: Network, path: str) -> dict[str, nn.Module]:
    """What runs between a stage and the head, in the order of registration."""
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
    """The best cut for a network in eval mode, tried on a few images unless it is known to be exact."""
    if ClassTokenCut.fits(model):
        return ClassTokenCut(model)
    with torch.no_grad():
        expected = uncut_features(model, images)
        for kind in (LastBlockCut, LastStageCut):
            if kind.fits(model) and _computes(made := kind(model), images, expected):
                return made
    _log.warning("%s cannot be cut before its last stage: its features stay frozen", type(model).__name__)
    return Cut(model)


def _computes(made: Cut, images: Tensor, expected: Tensor) -> bool:
    try:
        given = made.suffix(made.prefix(images))
    except (RuntimeError, TypeError, AttributeError, IndexError, ValueError):
        return False  # modules run in another order, or pass on more than one tensor
    return given.shape == expected.shape and torch.allclose(given, expected, rtol=1e-3, atol=1e-4)
