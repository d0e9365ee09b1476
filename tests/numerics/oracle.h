// What another implementation computed of whole models in fp64 (the folders tests/golden/*_oracle), to compare with.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/numerics/tensors.h"

namespace planwright::testing {

// A model with a norm behind the encoder and the tanh form of GELU. And one as models are published: without that norm,
// with the exact GELU, and with dense MLP layers. The other files of an oracle are beside its recipe.
inline constexpr char kOracleRecipe[] = "tests/golden/vlm_oracle/oracle.yaml";
inline constexpr char kPublishedOracleRecipe[] = "tests/golden/published_oracle/oracle.yaml";

struct OracleDifferences {
  std::vector<std::string> beyond;  // "gradients/NAME 3.1e-02": beyond the bounds, or not there
  double worst_output = 0, worst_gradient = 0;
  size_t outputs = 0, gradients = 0;  // compared
};

// What a run has of its first step: values and gradients as probes have them, and from metrics.jsonl the mean loss and
// the mean square of the rows of the encoder, which is not read where there is none.
struct StepNumbers {
  Tensors values, gradients;
  double loss = 0, mean_square = 0;
};

// Bounds: 1e-10 for outputs and 1e-9 for gradients, which the oracle has of the summed loss and a run of the mean;
// 1e-12 for the two numbers. Samples may be packed into one: shapes of values do not count.
OracleDifferences CompareWithOracle(StepNumbers step, const std::string& recipe = kOracleRecipe);

// A batch with the two samples of the oracle as two documents of one sample, written to `path`.
void WritePackedBatch(const std::string& path);

}  // namespace planwright::testing
