"""Times the layers of the model in plain PyTorch on one GPU, as a judge of the executor's times.

    python tests/gpu/torch_layers.py --out times.jsonl      # PyTorch 2.11 with CUDA; 90 seconds
    python tests/gpu/torch_layers.py --check                # compares the formulas with slow loops, without a GPU

bf16, one sample of 8192 tokens, widths of the 20-layer model, 64 experts on the GPU. Forward and backward with all
gradients, those of weights in bf16 as autograd makes them. 5 runs are not counted, then the median of 20 is printed.
Each result is printed and written as soon as it is known, so a run that is ended early keeps what it measured. A case
that fails, or takes longer than its part of the time, does not stop the others.
"""
import argparse
import contextlib
import functools
import gc
import json
import math
import os
import signal
import statistics
import sys
import time

START = time.monotonic()    # before PyTorch, whose import takes seconds

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import torch_formulas as formulas

POSITIONS = 8192
DEVICE = 'cuda'
MEMORY = 60e9           # bytes; more is refused by the allocator
RUNS, FIRST_RUNS = 20, 5
SUSTAINED_MS = 3000


class Overtime(BaseException):
    """Not an Exception, so that no compiler catches it and goes on."""


@contextlib.contextmanager
def limit(seconds):
    def stop(*_):
        raise Overtime(f'stopped after {seconds:.0f} s')

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def run_times(step, runs):
    """For each run, the device's ms from its start to each mark and to its end. step(mark) calls mark or does not."""
    def now():
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    marks = []
    for _ in range(runs):
        events = [now()]
        step(lambda: events.append(now()))
        marks.append(events + [now()])
    torch.cuda.synchronize()
    return [[first.elapsed_time(event) for event in rest] for first, *rest in marks]


class Report:
    def __init__(self, path, budget, sustained):
        self.lines = open(path, 'a', encoding='utf-8') if path else None
        self.end = START + budget
        self.sustained = sustained

    def say(self, part, form, what, text, **record):
        print('torch_layers', part, form, what, text, sep='  ', flush=True)
        if self.lines:
            record = {'part': part, 'form': form, 'what': what, **record, 'at_s': round(time.monotonic() - START, 1)}
            self.lines.write(json.dumps(record) + '\n')
            self.lines.flush()

    def case(self, part, form, what, build, flops=0, moved=0, seconds=15):
        """Times build(record)(mark) and gives ms, or None. build may add to the record. moved: bytes."""
        seconds = min(seconds, self.end - time.monotonic())
        if seconds < 1:
            self.say(part, form, what, 'skipped: no time left', skipped=True)
            return None
        record, failure = {}, None
        try:
            torch.cuda.reset_peak_memory_stats()
            with limit(seconds):
                step = build(record)
                run_times(step, FIRST_RUNS)
                runs = run_times(step, RUNS)
            record['ms'] = statistics.median(run[-1] for run in runs)
            record['least_ms'] = min(run[-1] for run in runs)
            if len(runs[0]) > 1:
                record['forward_ms'] = statistics.median(run[0] for run in runs)
            if self.sustained:
                record['sustained_ms'] = self._sustained(step, record['ms'])
            record['peak_gb'] = torch.cuda.max_memory_allocated() / 1e9
        except (Exception, Overtime) as error:
            failure = f'{type(error).__name__}: {error}'.split('\n')[0][:300]
        step = None
        gc.collect()
        torch.cuda.empty_cache()
        if failure:
            self.say(part, form, what, f'failed: {failure}', failed=failure)
            return None
        self.say(part, form, what, self._text(record, flops, moved), **record)
        return record['ms']

    def _sustained(self, step, ms):
        """ms of a run when runs follow each other for three seconds: the card is then limited by its power."""
        count = max(1, math.ceil(SUSTAINED_MS / ms))

        def repeat(_):
            for _ in range(count):
                step(lambda: None)

        return run_times(repeat, 1)[0][-1] / count

    def _text(self, record, flops, moved):
        text = f"{record['ms']:.3f} ms"
        if 'forward_ms' in record:
            text += f"  forward {record['forward_ms']:.3f}"
        if flops:
            record['tflops'] = flops / record['ms'] / 1e9
            text += f"  {record['tflops']:.0f} TFLOP/s"
        if moved:
            record['tb_per_s'] = moved / record['ms'] / 1e9
            text += f"  {record['tb_per_s']:.2f} TB/s"
        if 'sustained_ms' in record:
            text += f"  sustained {record['sustained_ms']:.3f} ms"
        if 'difference' in record:
            text += f"  difference {record['difference']:.1e}"
        return text


def both(forward, leaves, dy):
    """A step: forward, mark, and the gradients of all leaves."""
    def step(mark):
        y = forward()
        mark()
        torch.autograd.grad(y, leaves, dy)
    return step


def alone(function):
    return lambda record: lambda mark: function()


class Bench:
    """The parts, in the order of their use. Each function is a part and reports its cases."""

    def __init__(self, report, public):
        self.report, self.public, self.s = report, public, formulas.Sizes()
        self.draw = formulas.Drawn(DEVICE, torch.bfloat16)

    def values(self, *shape, std=1.0):
        return self.draw.normal(*shape, std=std).detach()

    def layer(self, part, form, parameters, layer, flops, plain=None, what='forward+backward', seconds=15):
        """layer(x, w) forward and backward. Its change of x is compared with that of `plain`."""
        def build(record):
            w = parameters(self.s)
            x = self.values(1, POSITIONS, self.s.hidden).requires_grad_()
            if plain:
                with torch.no_grad():
                    right = (plain(x, w) - x).float()
                found = (layer(x, w) - x).detach().float()
                record['difference'] = float((found - right).norm() / right.norm())
            return both(lambda: layer(x, w), [x, *w.values()], self.values(1, POSITIONS, self.s.hidden))

        return self.report.case(part, form, what, build, flops=3 * POSITIONS * flops, seconds=seconds)

    # Floating-point operations of a token, forward; those of docs/flops.md.
    def mamba_flops(self):
        s = self.s
        return 2 * s.hidden * (2 * s.inner + s.xbc + s.heads) + 7 * s.inner * s.state

    def attention_flops(self):
        s = self.s
        width = s.q_heads * s.head_dim
        return 2 * s.hidden * (s.qkv + width) + 2 * POSITIONS * width

    def experts_flops(self):
        s = self.s
        return 2 * s.hidden * (s.experts + 2 * s.top_k * s.ffn + 2 * s.shared)

    def plain_mamba(self, x, w):
        return formulas.mamba_layer(x, w, self.s)

    def plain_experts(self, x, w):
        return formulas.experts_layer(x, w, torch.zeros(self.s.experts, device=DEVICE), self.s)

    def mamba(self):
        self.layer('mamba', 'eager', self.draw.mamba, self.plain_mamba, self.mamba_flops())
        self.layer('mamba', 'eager conv1d', self.draw.mamba,
                   lambda x, w: formulas.mamba_layer(x, w, self.s, formulas.torch_conv), self.mamba_flops(),
                   self.plain_mamba)

    def moe(self):
        self.layer('moe', 'eager', self.draw.experts, self.plain_experts, self.experts_flops())

    def attention(self):
        s = self.s
        forms = {}
        for name, backend, form in (('cudnn', SDPBackend.CUDNN_ATTENTION, formulas.grouped_attention),
                                    ('cudnn repeated', SDPBackend.CUDNN_ATTENTION, formulas.repeated_attention),
                                    ('flash', SDPBackend.FLASH_ATTENTION, formulas.grouped_attention)):
            def use(q, k, v, backend=backend, form=form):
                with sdpa_kernel(backend):
                    return form(q, k, v)

            def build(_, use=use):
                # From qkv to a, and from da to dqkv: what stands between the two dense products of the layer.
                qkv = self.values(1, POSITIONS, s.qkv).requires_grad_()
                da = self.values(1, POSITIONS, s.q_heads, s.head_dim).transpose(1, 2)
                return both(lambda: use(*formulas.split_heads(qkv, s)), [qkv], da)

            if name == 'cudnn repeated' and 'cudnn' in forms:
                continue    # only where cuDNN cannot share keys by itself
            ms = self.report.case('attention alone', name, 'forward+backward', build,
                                  flops=6 * POSITIONS**2 * s.q_heads * s.head_dim)
            if ms is not None:
                forms[name] = ms, use
        if forms:
            name = min(forms, key=lambda name: forms[name][0])
            self.layer('attention', name, self.draw.attention,
                       lambda x, w: formulas.attention_layer(x, w, s, forms[name][1]), self.attention_flops())

    def _head(self, form, loss, widen, seconds=15):
        """dx and the gradients of norm and lm_head, of the summed loss; a tenth of the labels do not count."""
        s = self.s

        def build(_):
            w = self.draw.head(s)
            x = self.values(1, POSITIONS, s.hidden).requires_grad_()
            labels = torch.randint(s.vocabulary, (1, POSITIONS), device=DEVICE)
            labels[:, ::10] = -100
            dloss = torch.ones((), device=DEVICE, dtype=torch.float32 if widen is formulas.wide else torch.bfloat16)
            return both(lambda: loss(x, w, labels, s, widen), [x, *w.values()], dloss)

        self.report.case('head+loss', form, 'forward+backward', build, seconds=seconds,
                         flops=6 * POSITIONS * s.hidden * s.vocabulary)

    def head(self):
        self._head('eager fp32', formulas.head_loss, formulas.wide)
        self._head('eager bf16', formulas.head_loss, lambda logits: logits)

    def adamw(self):
        elements = 500_000_000

        def setup():
            master = torch.zeros(elements, device=DEVICE).uniform_(-0.02, 0.02).requires_grad_()
            master.grad = torch.empty_like(master).uniform_(-1e-3, 1e-3)
            return master, torch.optim.AdamW([master], lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

        def step(_):
            _, optimizer = setup()
            return lambda mark: optimizer.step()

        def step_and_round(_):
            master, optimizer = setup()
            weight = torch.empty(elements, device=DEVICE, dtype=torch.bfloat16)

            def both_passes(mark):
                optimizer.step()
                weight.copy_(master.detach())
            return both_passes

        def norm(_):
            gradient = torch.empty(elements, device=DEVICE).uniform_(-1e-3, 1e-3)
            return lambda mark: torch.linalg.vector_norm(gradient)

        self.report.case('adamw 5e8', 'fused', 'step', step, moved=28 * elements)
        self.report.case('adamw 5e8', 'fused', 'step and bf16 copy', step_and_round, moved=30 * elements)
        self.report.case('adamw 5e8', 'eager', 'gradient norm', norm, moved=4 * elements)

    def products(self):
        s = self.s
        for name, inputs, outputs in (('in_proj', s.hidden, s.inner + s.xbc + s.heads),
                                      ('out_proj', s.inner, s.hidden),
                                      ('qkv', s.hidden, s.qkv),
                                      ('o_proj', s.q_heads * s.head_dim, s.hidden),
                                      ('shared_up', s.hidden, s.shared),
                                      ('shared_down', s.shared, s.hidden),
                                      ('lm_head', s.hidden, s.vocabulary)):
            x, w, dy = self.values(POSITIONS, inputs), self.values(outputs, inputs), self.values(POSITIONS, outputs)
            flops = 2 * POSITIONS * inputs * outputs
            product = functools.partial(self.report.case, 'product', f'{name} {inputs}->{outputs}', flops=flops)
            product('forward', alone(lambda: torch.nn.functional.linear(x, w)))
            product('dgrad', alone(lambda: torch.mm(dy, w)))
            product('wgrad bf16', alone(lambda: torch.mm(dy.t(), x)))
            dw = torch.zeros(outputs, inputs, device=DEVICE)
            product('wgrad added in fp32',
                    alone(lambda: torch.addmm(dw, dy.t(), x, out_dtype=torch.float32, out=dw)))

    def grouped(self):
        s = self.s
        rows = POSITIONS * s.top_k
        ids = torch.rand(POSITIONS, s.experts, device=DEVICE).topk(s.top_k).indices
        ends = formulas.sort_slots(ids, s.experts)[2]
        for name, inputs, outputs in (('up', s.hidden, s.ffn), ('down', s.ffn, s.hidden)):
            x, dy = self.values(rows, inputs), self.values(rows, outputs)
            w = self.values(s.experts, outputs, inputs)
            product = functools.partial(self.report.case, 'grouped product', f'{name} {inputs}->{outputs}',
                                        flops=2 * rows * inputs * outputs)
            product('forward', alone(lambda: torch._grouped_mm(x, w.transpose(1, 2), offs=ends)))
            product('dgrad', alone(lambda: torch._grouped_mm(dy, w, offs=ends)))
            product('wgrad bf16', alone(lambda: torch._grouped_mm(dy.t(), x, offs=ends)))

    def mamba_compiled(self):
        layer = torch.compile(lambda x, w: formulas.mamba_layer(x, w, self.s), dynamic=False)
        self.layer('mamba', 'compile', self.draw.mamba, layer, self.mamba_flops(), self.plain_mamba, seconds=45)

    def moe_compiled(self):
        bias = torch.zeros(self.s.experts, device=DEVICE)
        layer = torch.compile(lambda x, w: formulas.experts_layer(x, w, bias, self.s), dynamic=False)
        self.layer('moe', 'compile', self.draw.experts, layer, self.experts_flops(), self.plain_experts, seconds=40)

    def head_compiled(self):
        self._head('compile fp32', torch.compile(formulas.head_loss, dynamic=False), formulas.wide, seconds=30)

    def public_scan(self):
        if not self.public:
            self.report.say('mamba', 'public', 'scan', 'not given: see --public', skipped=True)
            return
        from public_scan import PublicKernels
        kernels, s = PublicKernels(self.public), self.s
        w = self.draw.mamba(s)
        scan_parameters = [w[name] for name in ('A_log', 'D', 'dt_bias')]
        xbc = self.values(1, POSITIONS, s.xbc).requires_grad_()
        z, dt = self.values(1, POSITIONS, s.inner + s.xbc + s.heads).split([s.inner + s.xbc, s.heads], -1)
        dt.requires_grad_()

        def build(record):
            began = time.monotonic()
            kernels.compile(xbc.detach(), dt.detach(), *(w.detach() for w in scan_parameters), s,
                            threads=os.cpu_count())
            record['compile_s'] = time.monotonic() - began
            return both(lambda: kernels.scan(xbc, dt, *scan_parameters, s), [xbc, dt, *scan_parameters],
                        self.values(1, POSITIONS, s.inner))

        if self.report.case('mamba', 'public', 'scan alone', build, seconds=60) is None:
            return
        compiled = torch.compile(formulas.shifted_conv, dynamic=False)
        for form, conv in (('eager', formulas.shifted_conv), ('compiled', compiled)):
            self.layer('mamba', f'public scan and norm, {form} convolution', self.draw.mamba,
                       lambda x, w: formulas.mamba_layer(x, w, s, conv, kernels.scan, kernels.norm),
                       self.mamba_flops(), self.plain_mamba, seconds=30)


PARTS = ('mamba', 'moe', 'attention', 'head', 'adamw', 'products', 'grouped', 'mamba_compiled', 'moe_compiled',
         'public_scan', 'head_compiled')


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument('--check', action='store_true', help='compare with slow loops on the CPU')
    arguments.add_argument('--out', help='file to which results are appended, one JSON object a line')
    arguments.add_argument('--parts', default=','.join(PARTS), help='names, separated by commas')
    arguments.add_argument('--sustained', action='store_true', help='also repeat each case for 3 s; takes minutes')
    arguments.add_argument('--budget', type=float, help='seconds in all; 90, with --sustained 400')
    arguments.add_argument('--public', default=os.environ.get('PLANWRIGHT_PUBLIC_KERNELS'),
                           help='folder with mamba_ssm, einops and packaging; docs/gpu.md says how to get it')
    options = arguments.parse_args()
    if options.check:
        import check_torch_formulas
        return check_torch_formulas.main()
    report = Report(options.out, options.budget or (400 if options.sustained else 90), options.sustained)
    if not torch.cuda.is_available():
        print('torch_layers  needs a GPU; --check does not', file=sys.stderr)
        return 1
    device = torch.cuda.get_device_properties(DEVICE)
    torch.cuda.set_per_process_memory_fraction(min(1.0, MEMORY / device.total_memory))
    report.say('machine', device.name, torch.__version__, f'cuDNN {torch.backends.cudnn.version()}')
    bench = Bench(report, options.public)
    for part in options.parts.split(','):
        try:
            getattr(bench, part)()
        except Exception as error:
            report.say(part, '', '', f'failed: {error!r}'[:300], failed=repr(error)[:300])
    report.say('end', '', '', f'{time.monotonic() - START:.1f} s')
    return 0


if __name__ == '__main__':
    sys.exit(main())
