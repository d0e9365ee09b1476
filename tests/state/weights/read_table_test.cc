// What a rank reads of published files: the elements that it keeps, each where it belongs, and no byte more than the
// table of `plan weights` says. On many layouts, element by element.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "planner/state/weights/initial_pieces.h"
#include "tests/numerics/layouts.h"
#include "tests/state/weights/published.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

// Of fp32 and fp64: small numbers are exact.
double NumberAt(DType dtype, const std::vector<std::byte>& bytes, int64_t index) {
  if (dtype == DType::kFp64) {
    double number = 0;
    std::memcpy(&number, bytes.data() + index * 8, 8);
    return number;
  }
  uint32_t bits = 0;
  if (dtype == DType::kBf16) {
    uint16_t half = 0;
    std::memcpy(&half, bytes.data() + index * 2, 2);
    bits = static_cast<uint32_t>(half) << 16;
  } else {
    std::memcpy(&bits, bytes.data() + index * 4, 4);
  }
  float number = 0;
  std::memcpy(&number, &bits, 4);
  return number;
}

std::map<int, RankReads> ByRank(const std::vector<RankReads>& table) {
  std::map<int, RankReads> by_rank;
  for (const RankReads& row : table) {
    for (int rank : row.ranks) EXPECT_TRUE(by_rank.emplace(rank, row).second) << rank;
  }
  return by_rank;
}

// Every rank reads what it needs; each element is that of its name and index.
void ExpectReads(const Plan& plan, int64_t rows) {
  WeightsFit fit = FitWeights(plan);
  ASSERT_TRUE(fit.fits()) << fit.status();
  const std::map<int, RankReads> table = ByRank(ReadTable(plan, fit));
  ASSERT_EQ(table.size(), static_cast<size_t>(plan.world_size));
  for (int rank = 0; rank < plan.world_size; ++rank) {
    SCOPED_TRACE(absl::StrCat("rank ", rank));
    ElementReader& reader = fit.sources[0].opened->reader();
    const int64_t before = reader.bytes_read();
    int64_t drawn = 0;
    for (const Module& module : plan.modules) {
      std::map<int, int64_t> filled;  // elements of storages
      for (const InitialPiece& one : InitialPieces(plan, fit, module, rank)) {
        const CheckpointPiece& piece = one.piece;
        int64_t elements = 0;
        for (const ElementRun& run : piece.runs) elements += run.count;
        if (piece.state.empty()) filled[piece.storage] += elements;
        if (one.source < 0) {
          drawn += elements;
          for (const ElementRun& run : piece.runs) EXPECT_GE(run.whole, rows * 64) << piece.name;
          continue;
        }
        const DType dtype = reader.TypeOf(piece.key).value().dtype;
        std::vector<ElementRun> runs = piece.runs;
        int64_t at = 0;
        for (ElementRun& run : runs) run.local = std::exchange(at, at + run.count);
        std::vector<std::byte> bytes(static_cast<size_t>(elements * DTypeBytes(dtype)));
        const absl::Status read = reader.Read(piece.key, runs, bytes, ElementReader::Numbers::kFinite);
        ASSERT_TRUE(read.ok()) << read;
        for (const ElementRun& run : runs) {
          for (int64_t i = 0; i < run.count; ++i)
            ASSERT_EQ(NumberAt(dtype, bytes, run.local + i), PublishedValue(piece.key, run.whole + i)) << piece.key;
        }
      }
      for (size_t i = 0; i < module.storages.size() && module.grid.contains(rank); ++i) {
        const Storage& storage = module.storages[i];
        if (storage.stage != CoordinateOf(module.grid, rank, Axis::kPp)) continue;
        int64_t expected = 0;  // without rows of padding
        for (const PublishedSlice& slice : SlicesOf(module, storage, CoordinatesOf(module.grid, rank)))
          for (const ElementRun& run : slice.runs) expected += run.count;
        EXPECT_EQ(filled[static_cast<int>(i)], expected) << storage.slot;
      }
    }
    EXPECT_EQ(reader.bytes_read() - before, table.at(rank).bytes[0]);
    EXPECT_EQ(drawn, table.at(rank).drawn);
  }
}

std::vector<Layout> SomeLayouts() {
  std::vector<Layout> layouts = TinyLayouts();
  for (const auto& more : {PipelineLayouts(), ContextParallelLayouts(), ExpertTpLayouts(), FrozenLayouts()}) {
    if (!more.empty() && more[0].recipe == kTinyRecipe) layouts.push_back(more[0]);
  }
  // Key heads that ranks share, and a vocabulary that is padded.
  for (const Layout& layout : UndividedLayouts()) {
    if (layout.name == "shared_keys_tp4" || layout.name == "undivided_colocated") layouts.push_back(layout);
  }
  return layouts;
}

class Reads : public ::testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, Reads, ::testing::ValuesIn(SomeLayouts()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Reads, OnlyWhatEachRankKeeps) {
  const Layout& layout = GetParam();
  const Plan whole = CompiledFile(InSource(layout.recipe), Join(layout.overrides, layout.training));
  for (const char* type : {"BF16", "F32"}) {
    const TestFolder folder;
    WriteFolder(folder.path(), TensorsOf(whole, type), 2);
    for (const char* precision : {"bf16", "fp32"}) {
      SCOPED_TRACE(absl::StrCat(type, " for ", precision));
      ExpectReads(CompiledFile(InSource(layout.recipe), Join(layout.overrides, layout.training,
                                                             {"precision.params=" + std::string(precision),
                                                              "initialize.from=" + folder.path()})),
                  0);
    }
  }
}

// Types may be mixed, fp16 among them, and rows be drawn.
TEST(Reads, OfEveryTypeAndWithDrawnRows) {
  RawTensors tensors = TensorsOf(CompiledFile(InSource(kTinyRecipe)), "F16");
  int at = 0;
  for (auto& [name, tensor] : tensors) {
    const char* types[] = {"F16", "F64", "BF16", "F32"};
    tensor = Numbers(types[at++ % 4], tensor.shape, [&](int64_t i) { return PublishedValue(name, i); });
  }
  const TestFolder folder;
  WriteFolder(folder.path(), tensors, 3);
  for (const int tp : {1, 2}) {
    ExpectReads(
        CompiledFile(InSource(kTinyRecipe), Join(EncoderOn(1, 1), LanguageOn(1, tp, tp, 1),
                                                 {"models.hybrid_moe_tiny.vocabulary=260", "precision.params=bf16",
                                                  "initialize.from=" + folder.path()})),
        256);
  }
}

// A rank reads no more of a file than the share that it keeps: of the experts a quarter.
TEST(Reads, AQuarterOfTheExperts) {
  const TestFolder folder;
  const Plan whole = CompiledFile(InSource(kTinyRecipe));
  WriteFolder(folder.path(), TensorsOf(whole, "BF16"), 2);
  const Plan plan = CompiledFile(
      InSource(kTinyRecipe),
      Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 4), {"precision.params=bf16", "initialize.from=" + folder.path()}));
  const std::map<int, RankReads> table = ByRank(ReadTable(plan, FitWeights(plan)));
  int64_t experts = 0, others = 0;
  for (const Parameter& parameter : whole.modules[1].parameters) {
    const int64_t elements = std::max<int64_t>(parameter.experts, 1) * ElementsOf(parameter.shape);
    (parameter.experts > 0 ? experts : others) += elements;
  }
  EXPECT_GT(table.at(1).bytes[0], 2 * experts / 4);
  EXPECT_LT(table.at(1).bytes[0], 2 * (experts / 4 + others));
}

}  // namespace
}  // namespace planwright::testing
