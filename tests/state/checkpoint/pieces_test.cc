// Over all ranks, pieces to write have each element of each tensor once; pieces to load fill a rank's storages and
// shards, and nothing else. Counted element by element, in every layout of the numerics tests.
#include "planner/state/checkpoint/pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/state/checkpoint/check_files.h"
#include "planner/state/checkpoint/disk_use.h"
#include "planner/state/checkpoint/shard_reader.h"
#include "tests/numerics/layouts.h"
#include "tests/state/checkpoint/plan_checkpoint.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using std::string;
using testing::CompiledFile;
using testing::Join;
using testing::Layout;

Plan PlanOf(const Layout& layout, const string& precision) {
  return CompiledFile(InSource(layout.recipe),
                      Join(layout.overrides, layout.training, {"precision.params=" + precision}));
}

// What a checkpoint must hold, from the parameters alone: by key, type and whole shape.
using Tensors = std::map<string, std::pair<DType, std::vector<int64_t>>>;
Tensors ExpectedTensors(const Plan& plan) {
  const DType weights = plan.precision == "bf16"   ? DType::kBf16
                        : plan.precision == "fp64" ? DType::kFp64
                                                   : DType::kFp32;
  const DType wide = plan.precision == "fp64" ? DType::kFp64 : DType::kFp32;
  Tensors tensors;
  for (const Module& module : plan.modules) {
    for (const Parameter& parameter : module.parameters) {
      for (int64_t copy = 0; copy < std::max<int64_t>(parameter.experts, 1); ++copy) {
        string name = parameter.name;
        if (parameter.experts > 0) name.replace(name.find("{expert}"), 8, std::to_string(copy));
        const auto add = [&](const string& key, DType dtype) { tensors[key] = {dtype, parameter.shape}; };
        if (parameter.buffer) {
          add(name, wide);
        } else if (!parameter.trained) {
          add(name, weights);
        } else {
          plan.precision == "bf16" ? add(name + ".master", DType::kFp32) : add(name, weights);
          add(name + ".exp_avg", wide);
          add(name + ".exp_avg_sq", wide);
        }
      }
    }
  }
  return tensors;
}

// An element of a published tensor: the number of the tensor, and the index in it.
using Element = int64_t;
constexpr Element kPadding = -1;
constexpr int64_t kMostElements = int64_t{1} << 32;

int64_t NumberOf(const string& name) {
  static std::map<string, int64_t> numbers;
  return numbers.emplace(name, static_cast<int64_t>(numbers.size())).first->second;
}
Element ElementAt(const string& name, int64_t index) { return NumberOf(name) * kMostElements + index; }

// What a rank has of a module, with the element in place of its value.
struct RankMemory {
  std::map<int, std::vector<Element>> storages;  // by index
  std::map<int, std::vector<Element>> shards;    // by bucket: the shard that the rank owns
};

RankMemory MemoryOf(const Plan& plan, const Module& module, int rank) {
  RankMemory memory;
  std::map<int, std::vector<Element>> buckets;
  for (size_t i = 0; i < module.storages.size(); ++i) {
    const Storage& storage = module.storages[i];
    if (storage.stage != CoordinateOf(module.grid, rank, Axis::kPp)) continue;
    std::vector<Element>& tensor = memory.storages[static_cast<int>(i)];
    tensor.resize(ElementsOf(storage.shape), kPadding);
    for (const PublishedSlice& slice : SlicesOf(module, storage, CoordinatesOf(module.grid, rank))) {
      for (const ElementRun& run : slice.runs)
        std::iota(&tensor.at(run.local), &tensor.at(run.local + run.count - 1) + 1, ElementAt(slice.name, run.whole));
    }
    if (storage.bucket < 0) continue;
    std::vector<Element>& bucket = buckets[storage.bucket];
    bucket.resize(module.buckets[storage.bucket].elements, kPadding);
    std::copy(tensor.begin(), tensor.end(), bucket.begin() + storage.offset);
  }
  for (const auto& [index, elements] : buckets) {
    const Bucket& bucket = module.buckets[index];
    int64_t shard = 0;
    if (bucket.shards > 1) {
      for (const std::vector<int>& members : MembersOf(plan, *plan.FindGroup(bucket.reduce_group))) {
        const auto it = std::find(members.begin(), members.end(), rank);
        if (it != members.end()) shard = it - members.begin();
      }
    }
    const int64_t owned = bucket.elements / bucket.shards;
    memory.shards[index].assign(elements.begin() + shard * owned, elements.begin() + (shard + 1) * owned);
  }
  return memory;
}

// The tensor that a piece's elements are in.
const std::vector<Element>& TensorOf(const RankMemory& memory, const Module& module, const CheckpointPiece& piece) {
  return piece.state.empty() ? memory.storages.at(piece.storage)
                             : memory.shards.at(module.storages.at(piece.storage).bucket);
}

// "a.master" without its state.
string NameOf(const string& key) {
  for (const char* state : {".master", ".exp_avg", ".exp_avg_sq"}) {
    if (key.ends_with(state)) return key.substr(0, key.size() - string(state).size());
  }
  return key;
}

// The piece is well formed, and its elements are those that its key promises.
void CheckPiece(const RankMemory& memory, const Module& module, const CheckpointPiece& piece, const Tensors& expected) {
  ASSERT_TRUE(expected.contains(piece.key)) << piece.key;
  EXPECT_EQ(piece.dtype, expected.at(piece.key).first) << piece.key;
  EXPECT_EQ(piece.shape, expected.at(piece.key).second) << piece.key;
  if (!piece.state.empty()) {
    EXPECT_EQ(piece.key, NameOf(piece.key) + "." + piece.state);
  }
  ASSERT_FALSE(piece.runs.empty()) << piece.key;
  const std::vector<Element>& tensor = TensorOf(memory, module, piece);
  int64_t reached = 0;
  for (const ElementRun& run : piece.runs) {
    ASSERT_GE(run.whole, reached) << piece.key << ": runs do not ascend";
    ASSERT_GT(run.count, 0) << piece.key;
    ASSERT_GE(run.local, 0) << piece.key;
    reached = run.whole + run.count;
    ASSERT_LE(reached, ElementsOf(piece.shape)) << piece.key;
    ASSERT_LE(run.local + run.count, static_cast<int64_t>(tensor.size())) << piece.key;
    const Element first = ElementAt(NameOf(piece.key), run.whole);
    for (int64_t k = 0; k < run.count; ++k) {
      if (tensor[run.local + k] != first + k) FAIL() << piece.key << " has another element at " << run.local + k;
    }
  }
}

// Each element of each tensor is written once.
void CheckWriters(const Plan& plan, const Tensors& expected) {
  std::map<string, std::vector<int>> writes;
  for (const auto& [key, tensor] : expected) writes[key].resize(ElementsOf(tensor.second));
  for (const Module& module : plan.modules) {
    for (int rank = 0; rank < plan.world_size; ++rank) {
      const std::vector<CheckpointPiece> pieces = PiecesToWrite(plan, module, rank);
      if (!module.grid.contains(rank)) {
        EXPECT_TRUE(pieces.empty()) << module.name << " on rank " << rank;
        continue;
      }
      const RankMemory memory = MemoryOf(plan, module, rank);
      std::set<string> keys;
      for (const CheckpointPiece& piece : pieces) {
        EXPECT_TRUE(keys.insert(piece.key).second) << piece.key << " twice on rank " << rank;
        ASSERT_NO_FATAL_FAILURE(CheckPiece(memory, module, piece, expected)) << "rank " << rank;
        std::vector<int>& counts = writes[piece.key];
        for (const ElementRun& run : piece.runs) {
          for (int64_t k = 0; k < run.count; ++k) ++counts[run.whole + k];
        }
      }
    }
  }
  for (const auto& [key, counts] : writes)
    EXPECT_TRUE(std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; })) << key;
}

// Each element of a rank's storages and shards is loaded once, and no padding.
void CheckLoading(const Plan& plan, const Module& module, int rank, const Tensors& expected) {
  const RankMemory memory = MemoryOf(plan, module, rank);
  std::map<std::pair<string, int>, std::vector<int>> loads;  // by state, and storage or bucket: of each element
  for (const auto& [index, tensor] : memory.storages) loads[{"", index}].resize(tensor.size());
  for (const auto& [index, tensor] : memory.shards) {
    for (const char* state : {"exp_avg", "exp_avg_sq"}) loads[{state, index}].resize(tensor.size());
    if (plan.precision == "bf16") loads[{"master", index}].resize(tensor.size());
  }
  for (const CheckpointPiece& piece : PiecesToLoad(plan, module, rank)) {
    ASSERT_NO_FATAL_FAILURE(CheckPiece(memory, module, piece, expected)) << "rank " << rank;
    const int owner = piece.state.empty() ? piece.storage : module.storages[piece.storage].bucket;
    std::vector<int>& counts = loads.at({piece.state, owner});
    for (const ElementRun& run : piece.runs) {
      for (int64_t k = 0; k < run.count; ++k) ++counts[run.local + k];
    }
  }
  for (const auto& [target, counts] : loads) {
    const std::vector<Element>& tensor =
        target.first.empty() ? memory.storages.at(target.second) : memory.shards.at(target.second);
    for (size_t i = 0; i < tensor.size(); ++i) {
      const int wanted = tensor[i] == kPadding ? 0 : 1;
      if (counts[i] != wanted)
        FAIL() << "rank " << rank << " loads element " << i << " of " << target.first << " " << target.second << " "
               << counts[i] << " times";
    }
  }
}

class EveryLayout : public ::testing::TestWithParam<Layout> {};

TEST_P(EveryLayout, WritesEachElementOnceAndLoadsAll) {
  for (const char* precision : {"bf16", "fp32", "fp64"}) {
    SCOPED_TRACE(precision);
    const Plan plan = PlanOf(GetParam(), precision);
    const Tensors expected = ExpectedTensors(plan);
    ASSERT_FALSE(expected.empty());
    std::vector<CheckpointTensor> listed;
    for (const auto& [key, tensor] : expected) listed.push_back({key, tensor.first, tensor.second});
    EXPECT_TRUE(CheckpointTensors(plan) == listed);  // sorted by key, as the map is
    ASSERT_NO_FATAL_FAILURE(CheckWriters(plan, expected));
    int64_t written = 0;
    for (const Module& module : plan.modules) {
      for (int rank = 0; rank < plan.world_size; ++rank) {
        if (module.grid.contains(rank)) {
          for (const CheckpointPiece& piece : PiecesToWrite(plan, module, rank)) {
            for (const ElementRun& run : piece.runs) written += run.count * DTypeBytes(piece.dtype);
          }
          ASSERT_NO_FATAL_FAILURE(CheckLoading(plan, module, rank, expected));
        } else {
          EXPECT_TRUE(PiecesToLoad(plan, module, rank).empty());
        }
      }
    }
    EXPECT_EQ(BytesOnDisk(plan), written);
  }
}

TEST(CountCheckpoints, CountsThoseOfTheRunAndThoseThatStay) {
  const auto counted = [](int64_t every, int64_t last, int64_t keep_every, const std::string& best = "") {
    Plan plan;
    plan.budget.steps = 1001;
    plan.checkpoint = {.every_steps = every, .keep_last = last, .keep_every_steps = keep_every, .keep_best = best};
    const CheckpointCount count = CountCheckpoints(plan);
    return std::pair(count.written, count.kept);
  };
  using Count = std::pair<int64_t, int64_t>;
  EXPECT_EQ(counted(0, 0, 0), Count(0, 0));
  EXPECT_EQ(counted(100, 0, 0), Count(11, 11));  // the last step has one, too
  EXPECT_EQ(counted(100, 3, 0), Count(11, 3));
  EXPECT_EQ(counted(100, 3, 500), Count(11, 6));
  EXPECT_EQ(counted(100, 3, 0, "held_out"), Count(11, 4));
  EXPECT_EQ(counted(1001, 3, 0), Count(1, 1));
}

// Tensors are those of the recipe: the run may go on in any other layout.
TEST_P(EveryLayout, HasTheTensorsOfOneRank) {
  Layout one = GetParam();
  one.overrides = one.one_rank;
  for (const char* precision : {"bf16", "fp32"}) {
    EXPECT_TRUE(CheckpointTensors(PlanOf(GetParam(), precision)) == CheckpointTensors(PlanOf(one, precision)))
        << precision;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, EveryLayout, ::testing::ValuesIn(testing::AllLayouts()),
                         [](const auto& info) { return info.param.name; });

// Which ranks have a piece of the key, and how many elements, by rank.
std::map<int, int64_t> WritersOf(const Plan& plan, const string& key) {
  std::map<int, int64_t> writers;
  for (const Module& module : plan.modules) {
    for (int rank = 0; rank < plan.world_size; ++rank) {
      for (const CheckpointPiece& piece : PiecesToWrite(plan, module, rank)) {
        if (piece.key != key) continue;
        for (const ElementRun& run : piece.runs) writers[rank] += run.count;
      }
    }
  }
  return writers;
}

// The elements of the piece are in the checkpoint, with the values that were written.
void ExpectInFiles(CheckpointReader& reader, const CheckpointPiece& piece) {
  const auto tensor = reader.tensors().find(piece.key);
  ASSERT_NE(tensor, reader.tensors().end()) << piece.key;
  EXPECT_EQ(tensor->second.dtype, piece.dtype) << piece.key;
  EXPECT_EQ(tensor->second.shape, piece.shape) << piece.key;
  const int64_t each = DTypeBytes(piece.dtype);
  int64_t end = 0;
  for (const ElementRun& run : piece.runs) end = std::max(end, run.local + run.count);
  std::vector<std::byte> expected(end * each), found(end * each);
  for (const ElementRun& run : piece.runs) {
    for (int64_t i = 0; i < run.count; ++i)
      testing::FillElement(piece.key, run.whole + i, each, &expected[(run.local + i) * each]);
  }
  const absl::Status status = reader.Read(piece.key, piece.runs, found);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(found == expected) << piece.key;
}

// The encoder is on ranks 0 and 1; the language model on ranks 2 to 5: tp 2 and dp 2, ep 2 and expert_dp 2.
TEST(Writers, AreTheFirstOfTheirReplicas) {
  const Layout layout = {"", Join(testing::EncoderOn(2, 2), testing::LanguageOn(2, 4, 2, 2))};
  const Plan plan = PlanOf(layout, "fp32");
  using Writers = std::map<int, int64_t>;
  const string head = "language.lm_head.weight", norm = "language.backbone.norm_f.weight",
               expert = "language.backbone.layers.1.mixer.experts.5.up_proj.weight",
               bias = "language.backbone.layers.1.mixer.gate.e_score_correction_bias";
  // Cut over tp: a half from each rank of the first dp lane.
  EXPECT_EQ(WritersOf(plan, head), (Writers{{2, 256 * 32}, {3, 256 * 32}}));
  // Whole on every rank.
  EXPECT_EQ(WritersOf(plan, norm), (Writers{{2, 64}}));
  EXPECT_EQ(WritersOf(plan, bias), (Writers{{2, 8}}));
  // On ep coordinate 1, ranks 3 and 5: the first of them.
  EXPECT_EQ(WritersOf(plan, expert), (Writers{{3, 64 * 48}}));
  // Both lanes have a part of a state, and only the first tp rank writes what tp repeats.
  for (const auto& [rank, count] : WritersOf(plan, norm + ".exp_avg")) EXPECT_TRUE(rank == 2 || rank == 4) << count;
  int64_t halves = 0;
  for (const auto& [rank, count] : WritersOf(plan, head + ".exp_avg")) halves += count;
  EXPECT_EQ(halves, 256 * 64);
}

// The checkpoint of one layout, as files, has what each rank of another layout needs.
TEST(Files, AreReadInOtherLayouts) {
  const auto layout = [](std::vector<string> overrides) { return Layout{"", std::move(overrides)}; };
  const Layout writer = layout(Join(testing::EncoderOn(2, 2), testing::LanguageOn(2, 4, 2, 2))),
               pipeline = layout(Join(testing::EncoderOn(1, 1), testing::LanguageOn(1, 4, 1, 1),
                                      testing::Parallel("language", {{"pp", 2}, {"expert_tp", 2}}))),
               colocated = layout(Join(testing::EncoderOn(4, 1), testing::LanguageOn(0, 4, 2, 4)));
  string pattern = ::testing::TempDir() + "/pieces_testXXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  for (const char* precision : {"bf16", "fp32"}) {
    const string folder = testing::WriteCheckpointOf(PlanOf(writer, precision), pattern + "/" + precision, 8, 1);
    EXPECT_THAT(CheckCheckpointFiles(folder, 2, [](const Plan&) { return true; }), ::testing::IsEmpty());
    const auto reader = CheckpointReader::Open(folder);
    ASSERT_TRUE(reader.ok()) << reader.status();
    for (const Layout& other : {writer, pipeline, colocated}) {
      const Plan plan = PlanOf(other, precision);
      EXPECT_EQ((*reader)->tensors().size(), CheckpointTensors(plan).size());
      for (const Module& module : plan.modules) {
        for (int rank = 0; rank < plan.world_size; ++rank) {
          for (const CheckpointPiece& piece : PiecesToLoad(plan, module, rank)) ExpectInFiles(**reader, piece);
        }
      }
    }
  }
  std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace planwright
