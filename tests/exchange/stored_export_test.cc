// Folders that hold parameters in other forms: import takes them, and export gives them back, bit for bit. What they
// should have is made of a plain export, element by element.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/exchange/export_run.h"
#include "planner/exchange/from_checkpoint.h"
#include "planner/exchange/import_folder.h"
#include "planner/state/checkpoint/run_lives.h"
#include "tests/exchange/toy_folder.h"
#include "tests/state/checkpoint/plan_checkpoint.h"
#include "tests/state/weights/stored_folder.h"
#include "tests/support/compiled.h"

namespace planwright {
namespace {

using ::testing::Contains;
using ::testing::Field;
using testing::Fused;
using testing::FusedChoice;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RawTensors;

class StoredExport : public testing::FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    plan_ = testing::CompiledFile(
        InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
        {"modules.language.placement.first_rank=1", "modules.language.placement.ranks=4",
         "modules.language.parallel.tp=2", "modules.language.parallel.ep=2", "precision.params=bf16",
         "models.radio_vit_tiny.activation=gelu", "models.radio_vit_tiny.final_norm=none"});
    ASSERT_EQ(*TakeLife(In("run")), 1);
    ASSERT_TRUE(WriteLifeStart(In("run"), 1, testing::StartOf(plan_)).ok());
    checkpoint_ = testing::WriteCheckpointOf(plan_, In("run"), 4, 1);
    plain_ = Exported("plain", "", &BuiltInDialects());
  }

  RawTensors Exported(const std::string& to, const std::string& like, const DialectSet* dialects) {
    ExportRequest request{.from = In("run"), .to = In(to), .shard_bytes = int64_t{5'000'000'000}};
    if (!like.empty()) request.like = In(like);
    request.dialects = dialects;
    const absl::StatusOr<ExportedRun> exported = ExportRun(request, {});
    EXPECT_TRUE(exported.ok()) << exported.status();
    if (!exported.ok()) return {};
    EXPECT_THAT(exported->findings.problems, IsEmpty());
    const absl::StatusOr<std::unique_ptr<WeightFiles>> files = WeightFiles::Open(In(to));
    EXPECT_TRUE(files.ok()) << files.status();
    if (!files.ok()) return {};
    RawTensors tensors;
    for (const auto& [name, tensor] : (*files)->all()) {
      std::string bytes(static_cast<size_t>(tensor.bytes), '\0');
      EXPECT_TRUE((*files)->ReadBytes(tensor, 0, std::as_writable_bytes(std::span(bytes))).ok()) << name;
      tensors[name] = {tensor.type, tensor.shape, std::move(bytes)};
    }
    return tensors;
  }
  // The plain folder in another form.
  void WriteFused(const std::string& name, FusedChoice choice) {
    testing::WriteFolder(In(name), Fused(plain_, plan_, choice), 2);
    std::filesystem::copy_file(In("plain/config.json"), In(name + "/config.json"));
  }
  static void ExpectSame(const RawTensors& got, const RawTensors& expected) {
    EXPECT_EQ(got.size(), expected.size());
    for (const auto& [name, tensor] : expected) {
      const auto found = got.find(name);
      ASSERT_NE(found, got.end()) << name;
      EXPECT_EQ(found->second.type, tensor.type) << name;
      EXPECT_EQ(found->second.shape, tensor.shape) << name;
      EXPECT_TRUE(found->second.bytes == tensor.bytes) << name;
    }
  }

  Plan plan_;
  std::string checkpoint_;
  RawTensors plain_;
  const DialectSet dialects_ = testing::FusedDialects();
};

TEST_F(StoredExport, WithoutASourceTheFirstFormLeaves) {
  ExpectSame(Exported("out", "", &dialects_), Fused(plain_, plan_, {false, false}));
}

TEST_F(StoredExport, TheFormOfTheSourceComesBack) {
  for (const bool renamed : {false, true}) {
    for (const bool stacked : {false, true}) {
      const std::string name = std::string("source") + (renamed ? "_renamed" : "") + (stacked ? "_stacked" : "");
      WriteFused(name, {renamed, stacked});
      ExpectSame(Exported(name + "_out", name, &dialects_), Fused(plain_, plan_, {renamed, stacked}));
    }
  }
}

TEST_F(StoredExport, ImportTakesEachForm) {
  WriteFused("one", {false, false});
  WriteFused("other", {true, true});
  const absl::StatusOr<ImportedModel> plain = ImportFolder(In("plain"), {}, "", dialects_);
  ASSERT_TRUE(plain.ok()) << plain.status();
  for (const char* name : {"one", "other"}) {
    const absl::StatusOr<ImportedModel> imported = ImportFolder(In(name), {}, "", dialects_);
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_THAT(imported->findings.problems, IsEmpty()) << name;
    const absl::StatusOr<ImportedModel> unknown = ImportFolder(In(name), {});
    ASSERT_TRUE(unknown.ok()) << unknown.status();
    EXPECT_THAT(unknown->findings.problems,
                Contains(Field(&Finding::where, HasSubstr("is of no part that can be expressed"))));
  }
}

TEST_F(StoredExport, ImportTellsWhatIsMissing) {
  RawTensors tensors = Fused(plain_, plan_, {true, true});
  ASSERT_EQ(tensors.erase("model.blocks.2.mix.qkv.weight"), 1);
  testing::WriteFolder(In("source"), tensors, 1);
  std::filesystem::copy_file(In("plain/config.json"), In("source/config.json"));
  const absl::StatusOr<ImportedModel> imported = ImportFolder(In("source"), {}, "", dialects_);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->findings.problems,
              ::testing::ElementsAre(Field(&Finding::where, HasSubstr("tensor model.blocks.2.mix.qkv.weight ["))));
}

// However small the pieces are in which a tensor leaves.
TEST_F(StoredExport, PiecesOfAnySizeAreTheSame) {
  const auto opened = CheckpointReader::Open(checkpoint_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  std::map<std::string, DType> keys;
  for (const auto& [key, type] : (*opened)->tensors()) keys[key] = type.dtype;
  Findings findings;
  const RunModel run = ModelOfRun(plan_, "", findings, dialects_);
  const RawTensors expected = Fused(plain_, plan_, {true, true});
  const auto has = [&](const std::string& name) {
    const auto tensor = expected.find(name);
    return tensor == expected.end() ? nullptr : &tensor->second.shape;
  };
  for (const LeavingTensor& leaving : LeavingTensors(run, *dialects_.Find("nemotron_h_omni"), keys, has, findings)) {
    if (leaving.parts.size() == 1 && !leaving.parts[0].map) continue;
    const OutTensor tensor = FromCheckpoint(**opened, leaving, DType::kBf16);
    std::string bytes(static_cast<size_t>(tensor.bytes), '\0');
    const std::span<std::byte> to = std::as_writable_bytes(std::span(bytes));
    const int64_t piece = std::max<int64_t>(8, tensor.bytes / 37 / 8 * 8);
    for (int64_t done = 0; done < tensor.bytes; done += piece) {
      const auto count = static_cast<size_t>(std::min(piece, tensor.bytes - done));
      const absl::Status read = tensor.read(done, to.subspan(static_cast<size_t>(done), count));
      ASSERT_TRUE(read.ok()) << read;
    }
    EXPECT_TRUE(bytes == expected.at(tensor.name).bytes) << tensor.name;
  }
  EXPECT_THAT(findings.problems, IsEmpty());
}

TEST_F(StoredExport, ALineThatDoesNotFitIsAProblem) {
  const DialectSet dialects =
      testing::DialectsWith("nemotron_h", "my.model", "tensor a.{layer} = mixer.q_proj.weight along 0 each 7\n");
  ExportRequest request{.from = In("run"), .to = In("out"), .shard_bytes = int64_t{5'000'000'000}};
  request.dialects = &dialects;
  const absl::StatusOr<ExportedRun> exported = ExportRun(request, {});
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_THAT(exported->findings.problems,
              ::testing::ElementsAre(Field(&Finding::where, HasSubstr("my.model:1:20: "))));
  EXPECT_FALSE(std::filesystem::exists(In("out")));
}

}  // namespace
}  // namespace planwright
