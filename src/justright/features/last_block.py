"""The last block of a ViT for the class token alone: exact, at a small part of the cost.

Of the last block only the class token's output is read, so each head has one query, and keys and values need not be
formed. Letters: x_i token i entering the block (i = 0 is the class token), n_i its layer norm before the affine part
g, b of `norm1`, heads h = 1..H of width e, W_q, W_k, W_v and biases from `qkv`, W_o from `proj`, layer scales s1, s2:

    c    = g * n_0 + b
    q_h  = W_q,h c + b_q,h
    r_h  = g * (W_k,h^T q_h) / sqrt(e)
    a_h  = softmax_i(r_h . n_i)          what k_i owes to b and b_k is the same for every i and cancels
    m_h  = g * sum_i a_h,i n_i + b       since the a_h,i sum to 1
    o_h  = W_v,h m_h + b_v,h
    y    = x_0 + s1 * (W_o [o_1 .. o_H] + b_o)
    out  = y + s2 * MLP(norm2(y))

Every parameter receives its exact gradient; that of b_k is zero, as it is in the ordinary block.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from justright.features.guarded_timm import Attention, Block, GluMlp, LayerScale, Mlp, Network, SwiGLU


def is_covered(block: Network) -> bool:
    """Whether the formulas above are what this block computes for the class token.

    They are not where queries or keys are normed, positions rotate, attention is gated or of another kind, a norm is
    no layer norm, chance is involved, or the MLP lets tokens see each other.
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
        # someone who hangs a hook into the block (LoRA, a probe) wants it to run
        and not any(part._forward_hooks or part._forward_pre_hooks for part in block.modules())
    )


def block_inputs(
    block: Network, tokens: Float[Tensor, "batch tokens dim"]
) -> tuple[Float[Tensor, "batch tokens dim"], Float[Tensor, "batch dim"]]:
    """All that the block's formulas read from the tokens: n_i for every i, and x_0."""
    norm = block.norm1
    return layer_norm(tokens, norm.normalized_shape, eps=norm.eps), tokens[:, 0]


def class_token(
    block: Network, n: Float[Tensor, "batch tokens dim"], x_0: Float[Tensor, "batch dim"]
) -> Float[Tensor, "batch dim"]:
    """`out` of the formulas above: what the ordinary block gives at position 0."""
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
