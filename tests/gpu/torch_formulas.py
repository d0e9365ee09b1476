"""The layers of docs/model in plain PyTorch, differentiated by autograd. torch_layers.py times them.

Activations are [samples, positions, features]. What the pages call wide is fp32, and fp64 for fp64 inputs. There is one
departure: factors and results of batched products are rounded to the type of the activations, because autograd has no
product of bf16 factors that gives fp32. So `C B^T`, the sums of a chunk and the states that are read are rounded.
"""
import dataclasses
import math

import torch
import torch.nn.functional as F


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Widths of the 20-layer model. `experts` is the number on one GPU."""
    hidden: int = 2688
    vocabulary: int = 131072
    eps: float = 1e-5
    q_heads: int = 32
    kv_heads: int = 8
    head_dim: int = 128
    heads: int = 64
    width: int = 64
    groups: int = 8
    state: int = 128
    conv: int = 4
    chunk: int = 128
    experts: int = 64
    top_k: int = 6
    scale: float = 2.5
    ffn: int = 1856
    shared: int = 3712

    @property
    def inner(self):
        return self.heads * self.width

    @property
    def bc(self):
        return self.groups * self.state

    @property
    def xbc(self):
        return self.inner + 2 * self.bc

    @property
    def qkv(self):
        return (self.q_heads + 2 * self.kv_heads) * self.head_dim


class Drawn:
    """Draws parameters: leaves that need a gradient, of one type, on one device."""

    def __init__(self, device, dtype, seed=1):
        self.device, self.dtype = device, dtype
        self.generator = torch.Generator(device).manual_seed(seed)

    def _leaf(self, values):
        return values.to(self.dtype).requires_grad_()

    def normal(self, *shape, std=0.0173):
        return self._leaf(torch.empty(shape, device=self.device).normal_(0, std, generator=self.generator))

    def uniform(self, *shape, low, high):
        return self._leaf(torch.empty(shape, device=self.device).uniform_(low, high, generator=self.generator))

    def mamba(self, s):
        step = self.uniform(s.heads, low=math.log(0.001), high=math.log(0.1)).detach().double().exp()
        return {
            'norm': self.uniform(s.hidden, low=0.5, high=1.5),
            'in_proj': self.normal(s.inner + s.xbc + s.heads, s.hidden),
            'conv_weight': self.uniform(s.xbc, 1, s.conv, low=-0.5, high=0.5),
            'conv_bias': self.uniform(s.xbc, low=-0.5, high=0.5),
            'A_log': self.uniform(s.heads, low=0, high=math.log(16)),
            'D': self.uniform(s.heads, low=0.5, high=1.5),
            'dt_bias': self._leaf(step + torch.log(-torch.expm1(-step))),
            'mixer_norm': self.uniform(s.inner, low=0.5, high=1.5),
            'out_proj': self.normal(s.hidden, s.inner),
        }

    def attention(self, s):
        return {
            'norm': self.uniform(s.hidden, low=0.5, high=1.5),
            'qkv': self.normal(s.qkv, s.hidden),
            'o_proj': self.normal(s.hidden, s.q_heads * s.head_dim),
        }

    def experts(self, s):
        return {
            'norm': self.uniform(s.hidden, low=0.5, high=1.5),
            'gate': self.normal(s.experts, s.hidden),
            'up': self.normal(s.experts, s.ffn, s.hidden),
            'down': self.normal(s.experts, s.hidden, s.ffn),
            'shared_up': self.normal(s.shared, s.hidden),
            'shared_down': self.normal(s.hidden, s.shared),
        }

    def head(self, s):
        return {'norm': self.uniform(s.hidden, low=0.5, high=1.5), 'lm_head': self.normal(s.vocabulary, s.hidden)}


def wide(x):
    return x if x.dtype == torch.float64 else x.float()


def rms_norm(x, weight, s):
    return F.rms_norm(x, (s.hidden,), weight, s.eps)


def shifted_conv(xbc, weight, bias):
    """silu(causal depthwise convolution) as shifted products: wide, rounded once."""
    taps, positions = weight.shape[-1], xbc.shape[1]
    padded = F.pad(wide(xbc), (0, 0, taps - 1, 0))
    total = wide(bias)
    for tap in range(taps):
        total = torch.addcmul(total, padded[:, tap:tap + positions], wide(weight[:, 0, tap]))
    return F.silu(total).to(xbc.dtype)


def torch_conv(xbc, weight, bias):
    """The same with conv1d, which rounds before silu."""
    total = F.conv1d(xbc.transpose(1, 2), weight, bias, padding=weight.shape[-1] - 1, groups=weight.shape[0])
    return F.silu(total[..., :xbc.shape[1]]).transpose(1, 2)


def chunked_scan(xbc, dt, a_log, d, dt_bias, s):
    """The scan in chunks; the sequence must be whole chunks. In shapes b is the sample, k the chunk, q the position in
    it, g the group, r the head of the group, p the width of a head, n the state."""
    samples, positions, _ = xbc.shape
    low, q, g, n = xbc.dtype, s.chunk, s.groups, s.state
    k, r, p = positions // q, s.heads // s.groups, s.width
    assert k * q == positions
    x, b_in, c_in = xbc.split([s.inner, s.bc, s.bc], -1)
    x = x.unflatten(1, (k, q)).unflatten(-1, (g, r, p)).transpose(2, 3)                     # b k g q r p
    b_in = b_in.unflatten(1, (k, q)).unflatten(-1, (g, n)).transpose(2, 3).reshape(-1, q, n)    # (b k g) q n
    c_in = c_in.unflatten(1, (k, q)).unflatten(-1, (g, n)).transpose(2, 3).reshape(-1, q, n)

    def rows(values):   # [b k g r q] as factors of [b k g q r p]
        return values.transpose(-1, -2).unsqueeze(-1)

    dt = -F.logsigmoid(-(wide(dt) + wide(dt_bias)))     # softplus without a threshold
    step = dt * -wide(a_log).exp()
    dt, step = (v.unflatten(1, (k, q)).unflatten(-1, (g, r)).permute(0, 1, 3, 4, 2) for v in (dt, step))    # b k g r q
    decay = step.cumsum(-1)
    total = decay[..., -1:]

    # Inside a chunk. Masked before the exponential, which would overflow above the diagonal.
    above = torch.ones(q, q, dtype=torch.bool, device=xbc.device).triu(1)
    factor = (decay.unsqueeze(-1) - decay.unsqueeze(-2)).masked_fill(above, -math.inf).exp()
    seen = torch.bmm(c_in, b_in.transpose(1, 2)).view(samples, k, g, 1, q, q)
    mix = (seen * factor * dt.unsqueeze(-2)).to(low)
    inside = torch.bmm(mix.reshape(-1, q, q), x.transpose(3, 4).reshape(-1, q, p)).view(samples, k, g, r, q, p)

    # What each chunk adds to the state, and the state at the start of each chunk: a product with a matrix of decays.
    left = (x * rows((total - decay).exp() * dt)).to(low).reshape(-1, q, r * p)
    added = torch.bmm(left.transpose(1, 2), b_in).view(samples, k, g, r, p * n)
    totals = total.squeeze(-1).permute(0, 2, 3, 1)      # b g r k
    until = totals.cumsum(-1)
    later = torch.ones(k, k, dtype=torch.bool, device=xbc.device).triu()
    carried = ((until - totals).unsqueeze(-1) - until.unsqueeze(-2)).masked_fill(later, -math.inf).exp()
    states = torch.bmm(carried.reshape(-1, k, k), wide(added).permute(0, 2, 3, 1, 4).reshape(-1, k, p * n))
    states = states.view(samples, g, r, k, p * n).permute(0, 3, 1, 2, 4).to(low).reshape(-1, r * p, n)

    read = torch.bmm(c_in, states.transpose(1, 2)).view(samples, k, g, q, r, p)
    y = inside.transpose(3, 4) + read * rows(decay.exp()) + wide(d).view(g, 1, r, 1) * x
    return y.to(low).transpose(2, 3).reshape(samples, positions, s.inner)


def gated_norm(y, z, weight, s):
    gated = (wide(y) * F.silu(wide(z))).unflatten(-1, (s.groups, -1))
    return (F.rms_norm(gated, gated.shape[-1:], None, s.eps).flatten(-2) * wide(weight)).to(y.dtype)


def mamba_layer(x, w, s, conv=shifted_conv, scan=chunked_scan, norm=gated_norm):
    zxbcdt = F.linear(rms_norm(x, w['norm'], s), w['in_proj'])
    z, xbc, dt = zxbcdt.split([s.inner, s.xbc, s.heads], -1)
    y = scan(conv(xbc, w['conv_weight'], w['conv_bias']), dt, w['A_log'], w['D'], w['dt_bias'], s)
    return x + F.linear(norm(y, z, w['mixer_norm'], s), w['out_proj'])


def split_heads(qkv, s):
    """q, k and v as [samples, heads, positions, head_dim]. Nothing is copied."""
    parts = qkv.split([s.q_heads * s.head_dim, s.kv_heads * s.head_dim, s.kv_heads * s.head_dim], -1)
    return [part.unflatten(-1, (-1, s.head_dim)).transpose(1, 2) for part in parts]


def grouped_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def repeated_attention(q, k, v):
    """Keys and values repeated for each query head, for backends that cannot share them."""
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attention_layer(x, w, s, attention=grouped_attention):
    q, k, v = split_heads(F.linear(rms_norm(x, w['norm'], s), w['qkv']), s)
    return x + F.linear(attention(q, k, v).transpose(1, 2).flatten(-2), w['o_proj'])


class Permute(torch.autograd.Function):
    """rows[i] = n[order[i] / k]. Both directions are gathers: the backward of an index would add atomically."""

    @staticmethod
    def forward(ctx, n, order, row_of_slot, k):
        ctx.save_for_backward(row_of_slot)
        ctx.k = k
        return n.index_select(0, torch.div(order, k, rounding_mode='floor'))

    @staticmethod
    def backward(ctx, rows):
        row_of_slot, = ctx.saved_tensors
        return rows.index_select(0, row_of_slot).unflatten(0, (-1, ctx.k)).sum(1), None, None, None


class Unpermute(torch.autograd.Function):
    """y[token] = the sum of the token's k rows; the backward of Permute, and the other way round."""

    @staticmethod
    def forward(ctx, rows, order, row_of_slot, k):
        ctx.save_for_backward(order)
        ctx.k = k
        return rows.index_select(0, row_of_slot).unflatten(0, (-1, k)).sum(1)

    @staticmethod
    def backward(ctx, dy):
        order, = ctx.saved_tensors
        return dy.index_select(0, torch.div(order, ctx.k, rounding_mode='floor')), None, None, None


def route(n, gate, bias, s):
    """Weights [tokens, k] wide, and ids [tokens, k]."""
    scores = F.linear(wide(n), wide(gate)).sigmoid()
    ids = (scores.detach() + bias).topk(s.top_k).indices
    chosen = scores.gather(1, ids)
    return s.scale * chosen / (chosen.sum(-1, keepdim=True) + 1e-20), ids


def sort_slots(ids, experts):
    """order: the slots by expert, then token; row_of_slot: its inverse; ends: of each expert's rows, on the device."""
    sorted_ids, order = ids.flatten().sort(stable=True)
    row_of_slot = torch.empty_like(order).scatter_(0, order, torch.arange(order.numel(), device=order.device))
    ends = torch.searchsorted(sorted_ids, torch.arange(experts, device=ids.device), right=True, out_int32=True)
    return order, row_of_slot, ends


def experts_layer(x, w, bias, s):
    """No step waits for the device: row counts stay there."""
    n = rms_norm(x, w['norm'], s)
    tokens = n.flatten(0, 1)
    weights, ids = route(tokens, w['gate'], bias, s)
    order, row_of_slot, ends = sort_slots(ids, s.experts)
    rows = Permute.apply(tokens, order, row_of_slot, s.top_k)
    before = torch._grouped_mm(rows, w['up'].transpose(1, 2), offs=ends)
    act = (F.relu(wide(before)).square() * weights.flatten().gather(0, order).unsqueeze(-1)).to(x.dtype)
    out = torch._grouped_mm(act, w['down'].transpose(1, 2), offs=ends)
    y = Unpermute.apply(out, order, row_of_slot, s.top_k).view_as(x)
    shared = F.linear(F.relu(F.linear(n, w['shared_up'])).square(), w['shared_down'])
    return x + y + shared


def head_loss(x, w, labels, s, widen=wide):
    """The sum of the cross entropy. A label of -100 does not count."""
    logits = F.linear(rms_norm(x, w['norm'], s), w['lm_head']).flatten(0, 1)
    return F.cross_entropy(widen(logits), labels.flatten(), reduction='sum', ignore_index=-100)
