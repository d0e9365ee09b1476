// A packed document trains as if it were alone: a batch of packed samples has the loss and the gradients of a batch in
// which each document has a sample to itself (docs/training/data.md#packed-documents). Recorded batches of text.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "planner/wire/records/safetensors.h"
#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

constexpr int64_t kSequence = 48, kPad = 255;
// Lengths of the documents of each packed sample. Chunks of the scan have 16 positions.
const std::vector<std::vector<int64_t>> kPackings = {{16, 32}, {5, 1, 9, 2, 31}, {47, 1}, {30, 18}};

struct Batch {
  std::vector<int64_t> tokens, labels, documents_per_sample, document_ends;
  std::vector<double> mask;

  void Append(const std::vector<int64_t>& document) {
    for (size_t i = 0; i < document.size(); ++i) {
      const bool last = i + 1 == document.size();
      tokens.push_back(document[i]);
      labels.push_back(last ? kPad : document[i + 1]);
      mask.push_back(last ? 0 : 1);
    }
  }
  void Pad() {
    for (; tokens.size() % kSequence != 0; labels.push_back(kPad), mask.push_back(0)) tokens.push_back(kPad);
  }
  void Write(const std::string& path) const {
    const int64_t rows = static_cast<int64_t>(tokens.size()) / kSequence;
    const auto bytes = [](const auto& values) {
      return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
    };
    std::vector<TensorBytes> file = {{"token_ids", DType::kInt64, {rows, kSequence}, bytes(tokens)},
                                     {"labels", DType::kInt64, {rows, kSequence}, bytes(labels)},
                                     {"loss_mask", DType::kFp64, {rows, kSequence}, bytes(mask)}};
    if (!document_ends.empty()) {
      const int64_t documents = static_cast<int64_t>(document_ends.size());
      file.push_back({"documents_per_sample", DType::kInt64, {rows}, bytes(documents_per_sample)});
      file.push_back({"document_ends", DType::kInt64, {documents}, bytes(document_ends)});
    }
    ASSERT_TRUE(WriteSafetensors(path, file).ok());
  }
};

struct Case {
  const char *name, *recipe, *model;
  friend void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }
};

class PackedDocuments : public ::testing::TestWithParam<Case> {};

TEST_P(PackedDocuments, TrainAsEachDocumentAlone) {
  Batch packed, alone;
  int64_t id = 0;
  for (const std::vector<int64_t>& lengths : kPackings) {
    int64_t end = 0;
    for (int64_t length : lengths) {
      std::vector<int64_t> document(length);
      for (int64_t& token : document) {
        ++id;
        token = (id * id * 7 + id) % 250;
      }
      packed.Append(document);
      packed.document_ends.push_back(end += length);
      alone.Append(document);
      alone.Pad();
    }
    ASSERT_EQ(end, kSequence);
    packed.documents_per_sample.push_back(static_cast<int64_t>(lengths.size()));
  }
  const std::string folder = ::testing::TempDir();
  packed.Write(folder + "/packed.safetensors");
  alone.Write(folder + "/alone.safetensors");

  // Routing statistics count padding, too, so that they differ: without the auxiliary loss they change nothing.
  const auto run = [&](const std::string& name, size_t samples, std::vector<std::string> more) {
    const std::string count = std::to_string(samples);
    return Launch(
        {GetParam().recipe,
         Join({"precision.params=fp64", "data.kind=recorded", "data.path=" + folder + "/" + name,
               "data.image_token=254", "batch.global_samples=" + count, "budget.train_samples=" + count,
               "budget.learning_rate.warmup_samples=0", std::string("models.") + GetParam().model + ".moe.aux_loss=0"},
              more),
         1, ""});
  };
  const TrainingRun whole = run("alone.safetensors", alone.tokens.size() / kSequence, {});
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const std::vector<std::string> packing = {"data.packed_documents=true"};
  for (const std::vector<std::string>& layout :
       {std::vector<std::string>{}, Join(LanguageOn(0, 2, 1, 2), Parallel("language", {{"cp", 2}}))}) {
    const TrainingRun one = run("packed.safetensors", kPackings.size(), Join(packing, layout));
    ASSERT_EQ(one.exit_code, 0) << one.output;
    EXPECT_NEAR(one.steps.at(0).loss, whole.steps.at(0).loss, 1e-12);
    double worst = 0;
    for (const auto& [name, expected] : whole.gradients_first) {
      const double distance = Distance(one.gradients_first.at(name), expected);
      EXPECT_LT(distance, 1e-9) << name;
      worst = std::max(worst, distance);
    }
    std::printf("worst gradient %.1e\n", worst);
    // Without document ends the same batch is another one.
    EXPECT_GT(std::abs(run("packed.safetensors", kPackings.size(), layout).steps.at(0).loss - whole.steps.at(0).loss),
              1e-4);
  }
}

// The scan of a Mamba-2 layer ends with a document, and rotary positions begin anew.
INSTANTIATE_TEST_SUITE_P(Of, PackedDocuments,
                         ::testing::Values(Case{"a_hybrid", kTextRecipe, "hybrid_moe_tiny"},
                                           Case{"a_decoder", "recipes/qwen3_moe_tiny.yaml", "decoder_tiny"}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace planwright::testing
