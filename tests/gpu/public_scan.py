"""The public Mamba-2 kernels of mamba-ssm (Triton) behind the functions of torch_formulas.py.

Only files of Python are used. The package's own start would load its compiled extensions, so it is passed over.
"""
import concurrent.futures
import contextvars
import importlib
import os
import sys
import types

import torch
import triton
import triton.testing
from triton.runtime.autotuner import Autotuner


class PublicKernels:
    """FOLDER has mamba_ssm and what it imports: einops and packaging."""

    def __init__(self, folder):
        sys.path.insert(0, os.path.abspath(folder))
        for name in ('mamba_ssm', 'mamba_ssm.ops'):
            package = types.ModuleType(name)
            package.__path__ = [os.path.join(os.path.abspath(folder), *name.split('.'))]
            sys.modules[name] = package
        self.combined = importlib.import_module('mamba_ssm.ops.triton.ssd_combined')
        self.norm_file = importlib.import_module('mamba_ssm.ops.triton.layernorm_gated')

    def _operands(self, xbc, dt, a_log, d, dt_bias, s):
        x, b_in, c_in = xbc.split([s.inner, s.bc, s.bc], -1)
        b_in, c_in = (part.unflatten(-1, (s.groups, s.state)) for part in (b_in, c_in))
        return ((x.unflatten(-1, (s.heads, s.width)), dt, -a_log.float().exp(), b_in, c_in, s.chunk),
                {'D': d.float(), 'dt_bias': dt_bias.float(), 'dt_softplus': True})

    def scan(self, xbc, dt, a_log, d, dt_bias, s):
        operands, options = self._operands(xbc, dt, a_log, d, dt_bias, s)
        return self.combined.mamba_chunk_scan_combined(*operands, **options).flatten(-2)

    def norm(self, y, z, weight, s):
        return self.norm_file.rmsnorm_fn(y, weight, None, z=z, eps=s.eps, group_size=s.inner // s.groups,
                                         norm_before_gate=False)

    def compile(self, xbc, dt, a_log, d, dt_bias, s, threads):
        """Compiles all variants of the scan's kernels at once. One after the other they take minutes."""
        # In a context of its own, because a compilation that is stopped half way leaves its mode switched on.
        contextvars.copy_context().run(self._compile, self._operands(xbc, dt, a_log, d, dt_bias, s), s.chunk, threads)

    def _compile(self, operands, longest, threads):
        """Blocks longer than `longest` are left out: no dim of a chunk is longer."""
        def only_compile(tuner, *arguments, warmup, **options):
            tuner.configs = [config for config in tuner.configs
                             if max(config.kwargs.get('BLOCK_SIZE_' + dim, 0) for dim in 'MNK') <= longest]
            tuner.best_config = tuner.configs[0]
            tuner.warmup(*arguments, **options)
            tuner.do_bench = lambda call, quantiles: triton.testing.do_bench(call, 2, 10, quantiles=quantiles)

        (*inputs, chunk), options = operands
        run, Autotuner.run = Autotuner.run, only_compile
        pool = concurrent.futures.ThreadPoolExecutor(threads)
        try:
            with torch.no_grad(), triton.AsyncCompileMode(pool, ignore_errors=True):
                out = self.combined._mamba_chunk_scan_combined_fwd(*inputs, chunk, **options)[0]
                self.combined._mamba_chunk_scan_combined_bwd(torch.empty_like(out), *inputs, out, chunk, **options)
        finally:
            Autotuner.run = run
            pool.shutdown(wait=False, cancel_futures=True)
