"""Compares torch_formulas.py with slow loops on the CPU: torch_layers.py --check."""
import dataclasses

import torch
import torch.nn.functional as F

import torch_formulas as formulas

SMALL = formulas.Sizes(hidden=16, vocabulary=40, q_heads=4, kv_heads=2, head_dim=8, heads=4, width=3, groups=2, state=5,
                       chunk=8, experts=5, top_k=2, ffn=24, shared=32)


def recursion(xbc, dt, a_log, d, dt_bias, s):
    """The scan, position by position."""
    x, b_in, c_in = xbc.split([s.inner, s.bc, s.bc], -1)
    ys = []
    for sample in range(xbc.shape[0]):
        for head in range(s.heads):
            group = head // (s.heads // s.groups)
            state = torch.zeros(s.width, s.state, dtype=xbc.dtype)
            for t in range(xbc.shape[1]):
                step = torch.log1p(torch.exp(dt[sample, t, head] + dt_bias[head]))
                x_t = x[sample, t, head * s.width:(head + 1) * s.width]
                b_t = b_in[sample, t, group * s.state:(group + 1) * s.state]
                c_t = c_in[sample, t, group * s.state:(group + 1) * s.state]
                state = torch.exp(-step * torch.exp(a_log[head])) * state + step * torch.outer(x_t, b_t)
                ys.append(state @ c_t + d[head] * x_t)
    return torch.stack(ys).view(xbc.shape[0], s.heads, xbc.shape[1], s.width).transpose(1, 2).flatten(-2)


def slow_conv(xbc, weight, bias):
    taps, rows = weight.shape[-1], []
    for t in range(xbc.shape[1]):
        past = [weight[:, 0, taps - 1 - a] * xbc[:, t - a] for a in range(taps) if t >= a]
        rows.append(bias + sum(past))
    total = torch.stack(rows, 1)
    return total * torch.sigmoid(total)


def slow_norm(y, z, weight, s):
    g = (y * z * torch.sigmoid(z)).view(*y.shape[:2], s.groups, -1)
    return (g / torch.sqrt((g * g).mean(-1, keepdim=True) + s.eps)).flatten(-2) * weight


def slow_attention(q, k, v):
    heads = []
    for head in range(q.shape[1]):
        shared = head // (q.shape[1] // k.shape[1])
        scores = q[:, head] @ k[:, shared].transpose(1, 2) / q.shape[-1] ** 0.5
        heads.append((scores + torch.full_like(scores, -torch.inf).triu(1)).softmax(-1) @ v[:, shared])
    return torch.stack(heads, 1)


def slow_experts(x, w, bias, s):
    """Every expert on every token, one after the other."""
    n = x / torch.sqrt((x * x).mean(-1, keepdim=True) + s.eps) * w['norm']
    scores = torch.sigmoid(n @ w['gate'].T)
    ids = (scores + bias).topk(s.top_k).indices
    chosen = torch.zeros_like(scores).scatter(-1, ids, 1) * scores
    weights = s.scale * chosen / chosen.sum(-1, keepdim=True)
    y = x + torch.relu(n @ w['shared_up'].T) ** 2 @ w['shared_down'].T
    for expert in range(s.experts):
        y = y + weights[..., expert:expert + 1] * (torch.relu(n @ w['up'][expert].T) ** 2 @ w['down'][expert].T)
    return y


def slow_loss(x, w, labels, s):
    n = x / torch.sqrt((x * x).mean(-1, keepdim=True) + s.eps) * w['norm']
    rows = torch.log_softmax(n @ w['lm_head'].T, -1)
    return -sum(rows[b, t, labels[b, t]] for b, t in (labels >= 0).nonzero().tolist())


def farthest(form, reference, x, w, slow_w=None):
    """The largest difference of results and of all gradients, each divided by the largest value."""
    slow_w = slow_w or w
    slow_x = x.detach().to(next(iter(slow_w.values())).dtype).requires_grad_()
    results = []
    for layer, inputs in ((form, [x, *w.values()]), (reference, [slow_x, *slow_w.values()])):
        y = layer(inputs[0])
        dy = torch.linspace(-1, 1, y.numel(), dtype=torch.float64).sin().view_as(y).to(y.dtype)
        results.append([y, *torch.autograd.grad(y, inputs, dy)])
    return max(float((a.double() - b).abs().max() / b.abs().max()) for a, b in zip(*results))


def main():
    s, failed = SMALL, False
    draw = formulas.Drawn('cpu', torch.float64)
    x = draw.normal(2, 24, s.hidden, std=1)
    mamba, attention, head = draw.mamba(s), draw.attention(s), draw.head(s)
    mamba['in_proj'] = draw.normal(*mamba['in_proj'].shape, std=1)      # decays from weak to strong
    labels = torch.arange(48).view(2, 24) % s.vocabulary
    labels[1, 3:9] = -100
    single = formulas.Drawn('cpu', torch.float32)
    experts = single.experts(s)
    experts = {name: (8 * v.detach()).requires_grad_() if name != 'norm' else v for name, v in experts.items()}
    experts64 = {name: v.detach().double().requires_grad_() for name, v in experts.items()}
    bias = torch.linspace(-0.1, 0.1, s.experts)
    starved = bias - 9 * (torch.arange(s.experts) == 1)     # expert 1 gets no row
    layer = formulas.mamba_layer
    slow = lambda x: layer(x, mamba, s, slow_conv, recursion, slow_norm)
    one_chunk = dataclasses.replace(s, chunk=24)
    cases = {
        'mamba, chunks of 8 against the recursion':
            (1e-12, lambda: farthest(lambda x: layer(x, mamba, s), slow, x, mamba)),
        'mamba, one chunk': (1e-12, lambda: farthest(lambda x: layer(x, mamba, one_chunk), slow, x, mamba)),
        'mamba with conv1d':
            (1e-12, lambda: farthest(lambda x: layer(x, mamba, s, formulas.torch_conv), slow, x, mamba)),
        'attention': (1e-12, lambda: farthest(lambda x: formulas.attention_layer(x, attention, s),
                                              lambda x: formulas.attention_layer(x, attention, s, slow_attention),
                                              x, attention)),
        'attention, repeated keys':
            (1e-12, lambda: farthest(lambda x: formulas.attention_layer(x, attention, s, formulas.repeated_attention),
                                     lambda x: formulas.attention_layer(x, attention, s, slow_attention),
                                     x, attention)),
        'head and loss': (1e-12, lambda: farthest(lambda x: formulas.head_loss(x, head, labels, s),
                                                  lambda x: slow_loss(x, head, labels, s), x, head)),
    }
    # The grouped product has no fp64.
    x32 = x.detach().float().requires_grad_()
    for name, b in (('experts against a loop', bias), ('an expert without rows', starved)):
        cases[name] = (2e-6, lambda b=b: farthest(lambda x: formulas.experts_layer(x, experts, b, s),
                                                  lambda x: slow_experts(x, experts64, b.double(), s),
                                                  x32, experts, experts64))
    for name, (tolerance, case) in cases.items():
        difference = case()
        failed |= not difference < tolerance
        print(f'torch_layers  check  {name}  {difference:.1e}  {"ok" if difference < tolerance else "FAILED"}')
    return 1 if failed else 0
