// One operation at the widths of the 20-layer model, to be timed by gpu_kernels.cc.
#pragma once

#include <ATen/ops/zeros.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/executor/ops/run_op.h"

namespace planwright::executor {

struct KernelCase {
  std::string name;
  // What cannot be avoided: bytes through device memory (each input read once, each output written once), and
  // floating-point operations of matrix products. The larger of the two times is the floor.
  double bytes = 0, flops = 0;
  // Time of the best implementation known before this one, in ms; 0: not known.
  double known_ms = 0;
  std::function<void()> run;  // launches the operation on the current stream
};

// An operation on tensors of the GPU, named by its plain form (tests/executor/ops/run_op.h).
struct KernelCall {
  Handler handler;
  Attributes attributes = {};
  Tensors inputs, parameters = {}, gradients = {};
};
inline KernelCase CaseOf(const std::string& name, double bytes, double flops, const KernelCall& call) {
  return {.name = name, .bytes = bytes, .flops = flops, .run = [call, op = Op(call.attributes)]() mutable {
            op.Run(call.handler, call.inputs, call.parameters, call.gradients);
          }};
}
// For KernelCall::gradients: zeros of these sizes.
inline Tensors GradientsOf(const Tensors& parameters) {
  Tensors gradients;
  for (const at::Tensor& parameter : parameters)
    gradients.push_back(at::zeros(parameter.sizes(), parameter.options().dtype(at::kFloat)));
  return gradients;
}

// One function for each file of this folder. Each case owns its tensors.
std::vector<KernelCase> MixerRowCases();      // convolution, gated norm, RMS norm
std::vector<KernelCase> ScanCases();          // Mamba-2 scan
std::vector<KernelCase> ExpertCases();        // router, permutation, experts
std::vector<KernelCase> RunProductCases();    // experts' rows with their matrices
std::vector<KernelCase> OuterProductCases();  // weight gradients of experts
std::vector<KernelCase> DecoderCases();       // rows of Qwen3-1.7B and experts of Qwen3-30B-A3B
std::vector<KernelCase> NormCases();          // norms of Qwen3-VL-2B, and the sums behind their backwards
std::vector<KernelCase> ImageCases();         // rows of the encoder of Qwen3-VL, and its images among tokens
std::vector<KernelCase> JoinedSumCases();     // products that add the residual, as one and one by one
std::vector<KernelCase> DenseCases();         // dense products, attention
std::vector<KernelCase> LossAndStepCases();   // cross entropy, optimizer

}  // namespace planwright::executor
