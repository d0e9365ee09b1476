// Weights of published files in the storages and masters of ranks: the same on every layout, converted to what the run
// has, drawn where a source does not have them, and nothing of a file that is not a number.
#include "executor/checkpoint/initial_weights.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "executor/checkpoint/host_copies.h"
#include "executor/optimizer/initialize.h"
#include "executor/optimizer/philox_draws.h"
#include "planner/plan/shard_map.h"
#include "planner/state/weights/initial_pieces.h"
#include "planner/state/weights/read_values.h"
#include "tests/numerics/layouts.h"
#include "tests/state/weights/published.h"
#include "tests/state/weights/stored_folder.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::executor {
namespace {

using testing::CompiledFile;
using testing::EncoderOn;
using testing::Join;
using testing::kTinyRecipe;
using testing::LanguageOn;
using testing::Numbers;
using testing::OneRankOnly;
using testing::Parallel;
using testing::PublishedValue;
using testing::RawTensors;
using testing::TensorsOf;
using testing::TestFolder;
using testing::WriteFolder;

Plan Tiny(const std::vector<std::string>& a, const std::vector<std::string>& b = {}) {
  return CompiledFile(InSource(kTinyRecipe), Join(a, b));
}

struct Loaded {
  std::vector<std::unique_ptr<ModuleState>> modules;
  std::map<std::string, std::vector<double>> weights;  // by Parameter::file_name, whole
  int64_t bytes = 0;
};

void AddWeights(const Module& module, const ModuleState& state, int rank,
                std::map<std::string, std::vector<double>>& weights) {
  for (size_t i = 0; i < module.storages.size(); ++i) {
    if (!state.has_storage(i)) continue;
    const at::Tensor flat = state.storages()[i].parameter.to(at::kDouble).reshape({-1});
    const double* numbers = flat.const_data_ptr<double>();
    for (const PublishedSlice& slice : SlicesOf(module, module.storages[i], CoordinatesOf(module.grid, rank))) {
      std::vector<double>& whole = weights[slice.file_name];
      whole.resize(static_cast<size_t>(ElementsOf(module.parameters[slice.parameter].shape)), std::nan(""));
      for (const ElementRun& run : slice.runs) std::copy_n(numbers + run.local, run.count, whole.begin() + run.whole);
    }
  }
}

// All ranks of the plan, one after the other.
Loaded Load(const Plan& plan, int threads = 2, const KindForms& forms = BuiltInForms()) {
  Loaded loaded;
  for (int rank = 0; rank < plan.world_size; ++rank) {
    auto weights = InitialWeights::Open(plan, rank, {}, forms);
    EXPECT_TRUE(weights.ok()) << weights.status();
    for (const Module& module : plan.modules) {
      if (!module.grid.contains(rank) || !weights.ok()) continue;
      auto state = std::make_unique<ModuleState>(plan, module, rank, at::kCPU);
      const absl::Status status = (*weights)->Load(*state, threads);
      EXPECT_TRUE(status.ok()) << status;
      AddWeights(module, *state, rank, loaded.weights);
      loaded.modules.push_back(std::move(state));
    }
    if (weights.ok()) loaded.bytes += (*weights)->bytes_read();
  }
  return loaded;
}

TEST(InitialWeights, AreTheSameOnEveryLayout) {
  const TestFolder folder;
  const RawTensors tensors = TensorsOf(Tiny({}), "BF16");
  WriteFolder(folder.path(), tensors, 3);
  const std::string from = "initialize.from=" + folder.path();
  for (const auto& layout :
       {OneRankOnly(), Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 1)), Join(EncoderOn(2, 1), LanguageOn(2, 4, 2, 4))}) {
    for (const int threads : {1, 5}) {
      const Plan plan = Tiny(layout, {from, "precision.params=fp64"});
      const Loaded loaded = Load(plan, threads);
      ASSERT_EQ(loaded.weights.size(), tensors.size());
      for (const auto& [name, values] : loaded.weights) {
        for (size_t i = 0; i < values.size(); ++i)
          ASSERT_EQ(values[i], PublishedValue(name, static_cast<int64_t>(i))) << name << " " << i;
      }
      int64_t planned = 0;
      for (const RankReads& row : ReadTable(plan, FitWeights(plan)))
        planned += row.bytes[0] * static_cast<int64_t>(row.ranks.size());
      EXPECT_EQ(loaded.bytes, planned);
    }
  }
}

// Fused, in groups of rows, stacked, transposed: each rank finds its elements, on every layout.
TEST(InitialWeights, OfOtherFormsAreTheSameOnEveryLayout) {
  for (const testing::FusedChoice choice : {testing::FusedChoice{false, false}, testing::FusedChoice{true, true}}) {
    const TestFolder folder;
    const Plan one = Tiny({});
    const RawTensors tensors = TensorsOf(one, "F16");
    WriteFolder(folder.path(), testing::Fused(tensors, one, choice), 3);
    const std::string from = "initialize.from=" + folder.path();
    for (const auto& layout :
         {OneRankOnly(), Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 1)), Join(EncoderOn(2, 1), LanguageOn(2, 4, 2, 4)),
          Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 2), Parallel("language", {{"expert_tp", 2}})),
          Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 1), Parallel("language", {{"pp", 2}}))}) {
      const Plan plan = Tiny(layout, {from, "precision.params=fp64"});
      const Loaded loaded = Load(plan, 2, testing::FusedForms());
      ASSERT_EQ(loaded.weights.size(), tensors.size());
      for (const auto& [name, values] : loaded.weights) {
        for (size_t i = 0; i < values.size(); ++i)
          ASSERT_EQ(values[i], PublishedValue(name, static_cast<int64_t>(i))) << name << " " << i;
      }
    }
  }
}

// Numbers that bf16 does not hold: weights are rounded once, and masters keep all digits.
TEST(InitialWeights, OfWiderFilesKeepTheirDigitsInTheMasters) {
  const TestFolder folder;
  RawTensors tensors = TensorsOf(Tiny({}), "F32");
  for (const char* type : {"F32", "F64", "F16"}) {
    // 1 + k / 1024: exact in fp16, fp32 and fp64.
    const auto value = [](int64_t i) { return 1 + static_cast<double>(i * 37 % 1024) / 1024; };
    for (auto& [name, tensor] : tensors) tensor = Numbers(type, tensor.shape, value);
    WriteFolder(folder.path(), tensors, 1);
    const Plan plan = Tiny(Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2)),
                           {"initialize.from=" + folder.path(), "precision.params=bf16"});
    Loaded loaded = Load(plan);
    for (const auto& [name, values] : loaded.weights) {
      const bool buffer = name.find("e_score_correction_bias") != std::string::npos;
      for (size_t i = 0; i < values.size(); ++i) {
        const double exact = value(static_cast<int64_t>(i));
        ASSERT_EQ(values[i],
                  buffer ? exact : static_cast<double>(static_cast<float>(at::BFloat16(static_cast<float>(exact)))))
            << name << " " << i;
      }
    }
    bool differ = false;
    for (const auto& module : loaded.modules) {
      module->RefreshMasters();  // as the plan's program does: they stay
      for (const BucketState& bucket : module->buckets()) {
        if (!bucket.master.defined()) continue;
        EXPECT_TRUE(at::equal(bucket.master.to(at::kBFloat16), bucket.parameter_shard)) << type;
        differ = differ || !at::equal(bucket.master, bucket.parameter_shard.to(at::kFloat));
      }
    }
    EXPECT_TRUE(differ) << type;
  }
}

// Of an fp64 file the master is the nearest fp32, and the weight the nearest bf16 of the master, as after a step.
// Straight to bf16 the first number would round up.
TEST(InitialWeights, OfFp64FilesFollowFromTheMaster) {
  const TestFolder folder;
  RawTensors tensors = TensorsOf(Tiny({}), "BF16");
  const std::vector<int64_t> shape = tensors.at("mlp1.0.weight").shape;
  const double numbers[] = {1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-8 + 0x1p-23, 1 + 0x3p-8 - 0x1p-40, 1 + 0x1p-8 - 0x1p-23};
  const double masters[] = {1 + 0x1p-8, 1 + 0x1p-8 + 0x1p-23, 1 + 0x3p-8, 1 + 0x1p-8 - 0x1p-23};
  const double weights[] = {1, 1 + 0x1p-7, 1 + 0x1p-6, 1};
  tensors["mlp1.0.weight"] = Numbers("F64", shape, [&](int64_t i) { return numbers[i % 4]; });
  WriteFolder(folder.path(), tensors, 1);
  const Plan plan = Tiny(OneRankOnly(), {"initialize.from=" + folder.path(), "precision.params=bf16"});
  const Loaded loaded = Load(plan);
  const std::vector<double>& loaded_weights = loaded.weights.at("mlp1.0.weight");
  ASSERT_EQ(loaded_weights.size(), static_cast<size_t>(ElementsOf(shape)));
  for (size_t i = 0; i < loaded_weights.size(); ++i) ASSERT_EQ(loaded_weights[i], weights[i % 4]) << i;
  const Module& module = plan.modules[0];
  int64_t found = 0;
  for (const CheckpointPiece& piece : PiecesToLoad(plan, module, 0)) {
    if (piece.state != "master" || piece.name != "radio_encoder.mlp1.0.weight") continue;
    const at::Tensor flat = FlatTensorOf(*loaded.modules[0], piece.storage, piece.state).to(at::kDouble);
    for (const ElementRun& run : piece.runs) {
      for (int64_t i = 0; i < run.count; ++i, ++found)
        ASSERT_EQ(flat[run.local + i].item<double>(), masters[(run.whole + i) % 4]);
    }
  }
  EXPECT_EQ(found, ElementsOf(shape));
}

TEST(InitialWeights, DrawWhatNoSourceHas) {
  const TestFolder folder;
  RawTensors language;
  for (const auto& [name, tensor] : TensorsOf(Tiny({}), "BF16")) {
    if (name.starts_with("language_model.")) language[name.substr(15)] = tensor;
  }
  WriteFolder(folder.path(), language, 2);
  const std::string sources =
      "initialize={sources: [{for: radio_encoder, from: drawn}, {for: language, from: " + folder.path() + "}]}";
  for (const char* precision : {"bf16", "fp32"}) {
    for (const auto& layout : {OneRankOnly(), Join(EncoderOn(2, 2), LanguageOn(2, 4, 2, 2))}) {
      const std::vector<std::string> model = {"models.hybrid_moe_tiny.vocabulary=264",
                                              std::string("precision.params=") + precision};
      const Plan drawn = Tiny(Join(layout, model)), plan = Tiny(Join(layout, model), {sources});
      std::map<std::string, std::vector<double>> expected;
      for (int rank = 0; rank < drawn.world_size; ++rank) {
        for (const Module& module : drawn.modules) {
          if (!module.grid.contains(rank)) continue;
          ModuleState state(drawn, module, rank, at::kCPU);
          InitializeParameters(drawn, rank, PhiloxDraws(static_cast<uint64_t>(drawn.seed)), 1, state);
          AddWeights(module, state, rank, expected);
        }
      }
      const Loaded loaded = Load(plan);
      ASSERT_EQ(loaded.weights.size(), expected.size());
      for (const auto& [name, values] : loaded.weights) {
        const bool extended = name.ends_with("embeddings.weight") || name.ends_with("lm_head.weight");
        const size_t from_source = !name.starts_with("language_model.") ? 0
                                   : extended                           ? size_t{256} * 64
                                                                        : values.size();
        for (size_t i = 0; i < values.size(); ++i) {
          ASSERT_EQ(values[i], i < from_source ? PublishedValue(name, static_cast<int64_t>(i)) : expected.at(name)[i])
              << name << " " << i;
        }
      }
    }
  }
}

TEST(InitialWeights, AllThatIsNoNumberIsListed) {
  const TestFolder folder;
  RawTensors tensors = TensorsOf(Tiny({}), "BF16");
  tensors.at("mlp1.0.weight") = Numbers("F16", {128}, [](int64_t i) { return i == 77 ? INFINITY : 1; });
  tensors.at("mlp1.1.weight") =
      Numbers("BF16", tensors.at("mlp1.1.weight").shape, [](int64_t i) { return i >= 1000 ? std::nan("") : 1; });
  WriteFolder(folder.path(), tensors, 1);
  const Plan plan = Tiny({"initialize.from=" + folder.path(), "precision.params=bf16"});
  auto weights = InitialWeights::Open(plan, 0, {});
  ASSERT_TRUE(weights.ok()) << weights.status();
  ModuleState state(plan, plan.modules[0], 0, at::kCPU);
  const absl::Status status = (*weights)->Load(state, 3);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string file = folder.path() + "/model.safetensors: tensor ";
  EXPECT_EQ(std::string(status.message()), "the weights cannot be loaded:\n  " + file +
                                               "mlp1.0.weight: element 77 is infinite or no number (NaN)\n  " + file +
                                               "mlp1.1.weight: element 1000 is infinite or no number (NaN)");
}

// The limits of bf16 and fp32, from either side, of weights and of buffers, which stay fp32. What is refused while
// values are read is refused at a launch, and nothing else.
TEST(InitialWeights, WhatIsTooLargeForTheRunIsRefused) {
  const std::string weight = "mlp1.0.weight";
  std::string buffer;
  for (const auto& [name, tensor] : TensorsOf(Tiny({}), "BF16")) {
    if (name.ends_with("e_score_correction_bias")) buffer = name;
  }
  struct Case {
    const char *precision, *type;
    std::string tensor;
    double number;
    const char* too_large;  // "": fits
  };
  const double bf16 = 0x1.fep127, beyond_bf16 = 0x1.ffp127, fp32 = 0x1.fffffep127, beyond_fp32 = 0x1.ffffffp127;
  for (const Case& c : std::vector<Case>{
           {"bf16", "F32", weight, bf16, ""},
           {"bf16", "F32", weight, 0x1.fefffep127, ""},
           {"bf16", "F32", weight, -beyond_bf16, "bf16"},
           {"bf16", "F64", weight, 0x1.fefffefp127, ""},
           {"bf16", "F64", weight, 0x1.feffffp127, "bf16"},  // rounds to beyond_bf16 in the master
           {"bf16", "F64", weight, 1e300, "bf16"},
           {"bf16", "F32", buffer, fp32, ""},
           {"bf16", "F64", buffer, -beyond_fp32, "fp32"},
           {"fp32", "F32", weight, fp32, ""},
           {"fp32", "F64", weight, std::nextafter(beyond_fp32, 0), ""},
           {"fp32", "F64", weight, beyond_fp32, "fp32"},
           {"fp32", "F64", weight, 1e300, "fp32"},
           {"fp64", "F64", weight, 1e300, ""},
       }) {
    SCOPED_TRACE(absl::StrCat(c.type, " for ", c.precision, ": ", c.tensor, " ", c.number));
    const TestFolder folder;
    RawTensors tensors = TensorsOf(Tiny({}), "BF16");
    ASSERT_TRUE(tensors.contains(c.tensor));
    const std::vector<int64_t> shape = tensors.at(c.tensor).shape;
    const int64_t last = ElementsOf(shape) - 1;
    tensors[c.tensor] = Numbers(c.type, shape, [&](int64_t i) { return i == last ? c.number : 1; });
    WriteFolder(folder.path(), tensors, 1);
    const Plan plan = Tiny({"initialize.from=" + folder.path(), std::string("precision.params=") + c.precision});
    const std::string expected = *c.too_large == '\0'
                                     ? ""
                                     : absl::StrCat(folder.path(), "/model.safetensors: tensor ", c.tensor,
                                                    ": element ", last, " is too large for ", c.too_large);
    WeightsFit fit = FitWeights(plan);
    ASSERT_TRUE(fit.fits()) << fit.status();
    EXPECT_EQ(absl::StrJoin(ReadAllValues(plan, fit, 2).problems, "\n"), expected);
    auto weights = InitialWeights::Open(plan, 0, {});
    ASSERT_TRUE(weights.ok()) << weights.status();
    ModuleState state(plan, plan.modules[c.tensor == buffer ? 1 : 0], 0, at::kCPU);
    const absl::Status status = (*weights)->Load(state, 2);
    EXPECT_EQ(std::string(status.message()), expected);
    if (!expected.empty()) EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  }
}

// A file that is cut off or replaced after its header was read ends with its name.
TEST(InitialWeights, AFileThatShrinksIsNamed) {
  for (const bool before_it_is_opened_again : {true, false}) {
    const TestFolder folder;
    WriteFolder(folder.path(), TensorsOf(Tiny({}), "BF16"), 1);
    const Plan plan = Tiny({"initialize.from=" + folder.path()});
    auto weights = InitialWeights::Open(plan, 0, {});
    ASSERT_TRUE(weights.ok()) << weights.status();
    ModuleState encoder(plan, plan.modules[0], 0, at::kCPU), language(plan, plan.modules[1], 0, at::kCPU);
    if (!before_it_is_opened_again) ASSERT_TRUE((*weights)->Load(encoder, 1).ok());
    const std::string file = folder.path() + "/model.safetensors";
    std::filesystem::resize_file(file, std::filesystem::file_size(file) / 3);
    const absl::Status status = (*weights)->Load(language, 2);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                ::testing::AllOf(
                    ::testing::HasSubstr(file),
                    ::testing::HasSubstr(before_it_is_opened_again ? "changes while it is read" : "it ends at byte")));
  }
}

TEST(InitialWeights, RowsOfTheEmbeddingThatAreZeroAreTold) {
  const TestFolder folder;
  RawTensors tensors = TensorsOf(Tiny({}), "BF16");
  tensors.at("language_model.backbone.embeddings.weight") =
      Numbers("BF16", {256, 64}, [](int64_t i) { return i / 64 == 130 || i / 64 == 131 ? 0 : 1; });
  WriteFolder(folder.path(), tensors, 1);
  const Plan plan = Tiny(Join(EncoderOn(1, 1), LanguageOn(1, 2, 2, 1)), {"initialize.from=" + folder.path()});
  for (int rank = 1; rank < 3; ++rank) {
    auto weights = InitialWeights::Open(plan, rank, {});
    ASSERT_TRUE(weights.ok()) << weights.status();
    ModuleState state(plan, plan.modules[1], rank, at::kCPU);
    ASSERT_TRUE((*weights)->Load(state, 1).ok());
    const std::vector<std::string> warnings = (*weights)->Warnings(state);
    ASSERT_EQ(warnings.size(), rank == 2 ? 1U : 0U);
    if (rank == 2) EXPECT_THAT(warnings[0], ::testing::HasSubstr("2 rows are zero: 130 to 131"));
  }
}

}  // namespace
}  // namespace planwright::executor
