#include "tests/numerics/oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>
#include <utility>

#include "planner/wire/records/safetensors.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

constexpr double kOutputs = 1e-10, kGradients = 1e-9, kNumbers = 1e-12;
constexpr char kChosen[] = ".expert_ids";

struct Oracle {
  Tensors expected;
  double tokens_in_loss = 0;
};

const Oracle& OracleOf(const std::string& recipe) {
  static std::map<std::string, Oracle> oracles;
  const auto [known, fresh] = oracles.try_emplace(recipe);
  if (fresh) {
    const std::string folder = recipe.substr(0, recipe.rfind('/'));
    std::ifstream text(InSource(folder + "/case.json"));
    known->second = {ReadTensors(InSource(folder + "/expected.safetensors")),
                     nlohmann::json::parse(text).at("tokens_in_loss").get<double>()};
  }
  return known->second;
}

// The order of a token's chosen experts is not defined; the weights are in the order of the experts.
void SortChoices(Tensors& values) {
  for (auto& [name, ids] : values) {
    if (!name.ends_with(kChosen)) continue;
    const auto weighted = values.find(name.substr(0, name.size() + 1 - sizeof kChosen) + ".expert_weights");
    if (weighted == values.end()) continue;
    WholeTensor& weights = weighted->second;
    const auto k = static_cast<size_t>(ids.shape.back());
    for (size_t row = 0; row < ids.values.size() / k; ++row) {
      std::vector<std::pair<double, double>> choices;
      for (size_t j = 0; j < k; ++j) choices.emplace_back(ids.values[row * k + j], weights.values[row * k + j]);
      std::sort(choices.begin(), choices.end());
      for (size_t j = 0; j < k; ++j) std::tie(ids.values[row * k + j], weights.values[row * k + j]) = choices[j];
    }
  }
}

// Compares what a run found under `name` with the oracle's tensor `key`. Returns the distance.
double CompareOne(const std::string& key, const WholeTensor& expected, const Tensors& found, const std::string& name,
                  double bound, std::vector<std::string>& beyond) {
  const auto tensor = found.find(name);
  if (tensor == found.end()) {
    beyond.push_back(key + " is not there");
    return 0;
  }
  const double distance = Distance(tensor->second, expected);
  char text[32];
  std::snprintf(text, sizeof text, " %.1e", distance);
  if (!(distance <= bound)) beyond.push_back(key + text);
  return distance;
}

// |found - expected| / |expected|
void CompareNumber(const std::string& name, double found, double expected, std::vector<std::string>& beyond) {
  CompareOne(name, {{1}, {expected}}, {{name, {{1}, {found}}}}, name, kNumbers, beyond);
}

// Of the rows that cross a bridge: what the projector makes, and beside it features of inner layers.
double MeanSquareOfRows(const Tensors& expected) {
  double sum = 0, elements = 0;
  for (const auto& [key, tensor] : expected) {
    if (key != "outputs/projector.out" && !key.starts_with("outputs/vision.tap")) continue;
    for (double value : tensor.values) sum += value * value;
    elements += static_cast<double>(tensor.values.size());
  }
  return sum / elements;
}

}  // namespace

OracleDifferences CompareWithOracle(StepNumbers step, const std::string& recipe) {
  OracleDifferences found;
  const double tokens_in_loss = OracleOf(recipe).tokens_in_loss;
  Tensors expected = OracleOf(recipe).expected;
  for (auto& [key, tensor] : step.values) {
    const auto same = expected.find(key);
    if (same != expected.end() && same->second.values.size() == tensor.values.size()) tensor.shape = same->second.shape;
  }
  SortChoices(step.values);
  SortChoices(expected);
  for (auto& [key, tensor] : expected) {
    if (key.starts_with("outputs/")) {
      found.worst_output =
          std::max(found.worst_output, CompareOne(key, tensor, step.values, key, kOutputs, found.beyond));
      ++found.outputs;
    } else if (key.starts_with("gradients/")) {
      for (double& value : tensor.values) value /= tokens_in_loss;
      found.worst_gradient = std::max(
          found.worst_gradient, CompareOne(key, tensor, step.gradients, key.substr(10), kGradients, found.beyond));
      ++found.gradients;
    }
  }
  CompareNumber("loss", step.loss, expected.at("outputs/loss_sum").values[0] / tokens_in_loss, found.beyond);
  if (expected.contains("outputs/projector.out"))
    CompareNumber("mean square", step.mean_square, MeanSquareOfRows(expected), found.beyond);
  return found;
}

void WritePackedBatch(const std::string& path) {
  const auto file = SafetensorsFile::Open(InSource("tests/golden/vlm_oracle/batch.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<TensorBytes> packed;
  int64_t samples = 0, length = 0;
  for (const auto& [name, stored] : file->tensors()) {
    TensorBytes& tensor = packed.emplace_back(TensorBytes{name, stored.dtype, stored.shape, *file->Read(stored)});
    if (name == "token_ids") samples = stored.shape[0], length = stored.shape[1];
    if (name == "token_ids" || name == "labels" || name == "loss_mask")
      tensor.shape = {1, stored.shape[0] * stored.shape[1]};
  }
  std::vector<int64_t> ends;
  for (int64_t i = 1; i <= samples; ++i) ends.push_back(i * length);
  const auto bytes = [](const std::vector<int64_t>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
  };
  for (TensorBytes& tensor : packed) {
    if (tensor.name != "images_per_sample") continue;
    const std::string each = tensor.bytes;
    const auto* images = reinterpret_cast<const int64_t*>(each.data());
    tensor = {"images_per_sample", DType::kInt64, {1}, bytes({std::accumulate(images, images + samples, int64_t{0})})};
  }
  packed.push_back({"documents_per_sample", DType::kInt64, {1}, bytes({samples})});
  packed.push_back({"document_ends", DType::kInt64, {samples}, bytes(ends)});
  ASSERT_TRUE(WriteSafetensors(path, packed).ok());
}

}  // namespace planwright::testing
