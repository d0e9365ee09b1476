// Rotary embeddings as transformers computes them in fp64, up to position 131,071 and in each way to stretch them
// (tests/interop/rope.py).
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <cstring>
#include <fstream>
#include <string>

#include "nlohmann/json.hpp"
#include "planner/wire/records/safetensors.h"
#include "tests/executor/ops/reference.h"
#include "tests/executor/ops/run_op.h"
#include "tests/support/folders.h"

namespace planwright::executor {
namespace {

at::Tensor ReadGolden(const SafetensorsFile& file, const std::string& name) {
  const auto& stored = file.tensors().at(name);
  const bool whole = stored.dtype == DType::kInt64;
  at::Tensor tensor = at::empty(stored.shape, whole ? at::kLong : at::kDouble);
  const auto bytes = file.Read(stored);
  EXPECT_TRUE(bytes.ok()) << name;
  std::memcpy(tensor.mutable_data_ptr(), bytes->data(), bytes->size());
  return tensor;
}

// What transformers calls the numbers of the operation. Of YaRN it has 32 and 1 turns where a config says none.
Attributes AttributesOf(const nlohmann::json& rope, int64_t head) {
  const auto number = [&](const char* name, double otherwise) { return rope.value(name, otherwise); };
  Attributes attributes = {{"q_heads", int64_t{1}}, {"k_heads", int64_t{0}}, {"v_heads", int64_t{0}},
                           {"head_dim", head},      {"rotary", head},        {"theta", number("rope_theta", 0)}};
  const std::string type = rope.at("rope_type");
  if (type == "default") return attributes;
  attributes["scaling"] = int64_t{type == "linear" ? 1 : type == "llama3" ? 2 : 3};
  attributes["factor"] = number("factor", 0);
  if (type == "linear") return attributes;
  attributes["original"] = number("original_max_position_embeddings", 0);
  attributes["low"] = number(type == "yarn" ? "beta_slow" : "low_freq_factor", 1);
  attributes["high"] = number(type == "yarn" ? "beta_fast" : "high_freq_factor", 32);
  if (type == "yarn") attributes["amplitude"] = number("attention_scaling", 0);
  return attributes;
}

TEST(RopeGolden, TurnsAsTransformersDo) {
  const std::string folder = InSource("tests/golden/rope_scaling/");
  const auto file = SafetensorsFile::Open(folder + "expected.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  std::ifstream text(folder + "case.json");
  const nlohmann::json cases = nlohmann::json::parse(text).at("cases");
  ASSERT_EQ(cases.size(), 5U);
  const at::Tensor positions = ReadGolden(*file, "positions");
  EXPECT_EQ(positions.max().item<int64_t>(), 131071);
  for (const auto& [name, rope] : cases.items()) {
    const at::Tensor x = ReadGolden(*file, name + ".x"), y = ReadGolden(*file, name + ".y");
    Op op(AttributesOf(rope, x.size(1)));
    const at::Tensor turned = op.Run(ops::RunRope, {x.unsqueeze(1), positions.unsqueeze(2)})[0].squeeze(1);
    const at::Tensor apart = at::linalg_vector_norm(turned - y, 2, {1}) / at::linalg_vector_norm(y, 2, {1});
    EXPECT_LT(apart.max().item<double>(), 1e-10) << name;
  }
}

}  // namespace
}  // namespace planwright::executor
