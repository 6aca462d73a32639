from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from justright.features.cuts import block_inputs, class_token, is_covered
from justright.features.guarded_timm import Block, timm


def randomized(block: nn.Module, seed: int = 0) -> nn.Module:
    """Random values everywhere, so that no affine part, bias or scale is trivial."""
    chance = torch.Generator().manual_seed(seed)
    for name, parameter in block.named_parameters():
        around = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        spread = 0.3 if parameter.ndim == 1 else 1.0 / math.sqrt(parameter.shape[1])
        parameter.data = around + spread * torch.randn(parameter.shape, generator=chance, dtype=parameter.dtype)
    return block


def outputs_and_gradients(compute, block, tokens):
    """The class token, and the gradient of a weighted sum of it for every parameter."""
    block.zero_grad()
    out = compute(tokens)
    (out * torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view_as(out)).sum().backward()
    return out.detach(), {name: parameter.grad.clone() for name, parameter in block.named_parameters()}


def assert_exact(block, tokens, tolerance):
    expected, expected_grads = outputs_and_gradients(lambda x: block(x)[:, 0], block, tokens)
    output, grads = outputs_and_gradients(lambda x: class_token(block, *block_inputs(block, x)), block, tokens)
    assert (output - expected).abs().max() <= tolerance * expected.abs().max()
    for name, gradient in expected_grads.items():
        largest = (grads[name] - gradient).abs().max() / gradient.abs().max()
        assert largest <= 10 * tolerance, f"{name}: {largest:.1e}"


KINDS = {
    "dino": {"qkv_bias": True},
    "layer scale, as DINOv2": {"qkv_bias": True, "init_values": 1e-5},
    "no qkv bias": {"qkv_bias": False},
    "no biases": {"qkv_bias": False, "proj_bias": False},
}


@pytest.mark.parametrize("kind", KINDS)
def test_output_and_gradients_agree_with_the_ordinary_block(kind):
    block = randomized(Block(24, num_heads=3, **KINDS[kind]).double())
    tokens = torch.randn(5, 11, 24, dtype=torch.float64)
    assert is_covered(block)
    assert_exact(block, tokens, tolerance=1e-13)


@pytest.mark.parametrize("init_values", [None, 1.0])
def test_block_of_vit_b_agrees_in_float32(init_values):
    torch.manual_seed(0)
    block = randomized(Block(768, num_heads=12, qkv_bias=True, init_values=init_values))
    assert_exact(block, torch.randn(2, 65, 768), tolerance=2e-5)


def test_key_bias_has_no_gradient():
    block = randomized(Block(24, num_heads=3, qkv_bias=True).double())
    tokens = torch.randn(2, 7, 24, dtype=torch.float64)
    _, exact = outputs_and_gradients(lambda x: class_token(block, *block_inputs(block, x)), block, tokens)
    _, ordinary = outputs_and_gradients(lambda x: block(x)[:, 0], block, tokens)
    assert exact["attn.qkv.bias"][24:48].abs().max() == 0
    assert ordinary["attn.qkv.bias"][24:48].abs().max() < 1e-14


@torch.no_grad()
def test_agrees_with_the_formulas_written_as_loops():
    block = randomized(Block(8, num_heads=2, qkv_bias=True, init_values=1.0).double())
    x = torch.randn(1, 4, 8, dtype=torch.float64)
    n, x_0 = block_inputs(block, x)
    g, b = block.norm1.weight, block.norm1.bias
    width, c, heads = 4, block.norm1.weight * n[0, 0] + block.norm1.bias, []
    w_q, w_k, w_v = block.attn.qkv.weight.view(3, 2, width, 8)
    b_q, b_k, b_v = block.attn.qkv.bias.view(3, 2, width)
    for h in range(2):
        q = w_q[h] @ c + b_q[h]
        logits = [float(q @ (w_k[h] @ (g * n[0, i] + b) + b_k[h])) / math.sqrt(width) for i in range(4)]
        total = sum(math.exp(logit) for logit in logits)
        values = [w_v[h] @ (g * n[0, i] + b) + b_v[h] for i in range(4)]
        heads.append(sum(math.exp(logits[i]) / total * values[i] for i in range(4)))
    y = x[0, 0] + block.ls1.gamma * (block.attn.proj.weight @ torch.cat(heads) + block.attn.proj.bias)
    out = y + block.ls2.gamma * block.mlp(block.norm2(y))
    torch.testing.assert_close(class_token(block, n, x_0)[0], out)


NOT_COVERED = {
    "q/k norm": {"qk_norm": True},
    "norm inside attention": {"scale_attn_norm": True},
    "differential attention": {"attn_layer": "diff"},
    "dropout in attention": {"attn_drop": 0.1},
    "dropout in the MLP": {"proj_drop": 0.1},
    "stochastic depth": {"drop_path": 0.1},
    "another norm": {"norm_layer": timm.layers.RmsNorm},
}


@pytest.mark.parametrize("why", NOT_COVERED)
def test_other_blocks_are_not_covered(why):
    assert not is_covered(Block(32, num_heads=2, qkv_bias=True, **NOT_COVERED[why]))


def test_other_classes_of_blocks_are_not_covered():
    from timm.models.eva import EvaBlock
    from timm.models.vision_transformer import ParallelScalingBlock, ResPostBlock

    assert not is_covered(EvaBlock(32, num_heads=2))  # rotary positions
    assert not is_covered(ResPostBlock(32, num_heads=2))
    assert not is_covered(ParallelScalingBlock(32, num_heads=2))
    assert not is_covered(nn.Linear(2, 2))


def test_gated_attention_is_not_covered():
    block = Block(32, num_heads=2)
    block.attn = timm.layers.Attention(32, num_heads=2, gated=True)
    assert not is_covered(block)


def test_block_with_a_hook_is_not_covered():
    block = Block(32, num_heads=2)
    assert is_covered(block)
    block.attn.qkv.register_forward_hook(lambda *_: None)
    assert not is_covered(block)


def test_gated_mlp_of_dinov2_giant_is_covered():
    block = randomized(Block(24, num_heads=3, qkv_bias=True, mlp_layer=timm.layers.SwiGLUPacked).double())
    assert is_covered(block)
    assert_exact(block, torch.randn(2, 7, 24, dtype=torch.float64), tolerance=1e-13)
