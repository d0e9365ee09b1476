// Traces of two machines, of which one has another clock: afterwards they are on one, as far as communications tell.
#include "planner/run/measure/align_clocks.h"

#include <gtest/gtest.h>

#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

constexpr int64_t kMicrosecond = 1000;

TEST(AlignClocks, TiesMachinesByTheirCommunications) {
  const RankPrograms ranks(
      testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
                            {"cluster.nodes=2", "cluster.gpus_per_node=1", "modules.language.placement.ranks=2",
                             "modules.language.parallel.ep=2", "modules.radio_encoder.placement.ranks=2"}));
  // Both ranks do the same at the same time, one of them 30 us late at its instructions. The second machine began to
  // count 7 s later, and its clock of the day is 4 ms wrong.
  constexpr int64_t kCounts = 7'000'000'000, kWrong = 4'000 * kMicrosecond;
  std::vector<Trace> traces(2);
  for (int rank = 0; rank < 2; ++rank) {
    Trace& trace = traces[static_cast<size_t>(rank)];
    trace.rank = rank, trace.host = rank == 0 ? "one" : "two", trace.steps = {3, 4};
    trace.wall_of_zero = rank == 0 ? 0 : kCounts + kWrong;
    const size_t entries = ranks.programs()[0]->step().end - ranks.programs()[0]->step().first;
    for (size_t i = 0; i < 2 * entries; ++i) {
      const int64_t begin = static_cast<int64_t>(i) * 100 * kMicrosecond, moved = rank == 0 ? 0 : -kCounts;
      trace.instructions.push_back({.step = i < entries ? 3 : 4,
                                    .launch_begin = begin + moved,
                                    .begin = begin + moved + rank * 30 * kMicrosecond,
                                    .end = begin + moved + 60 * kMicrosecond});
    }
  }
  AlignClocks(ranks, traces);
  for (size_t i = 0; i < traces[0].instructions.size(); ++i) {
    // An all_reduce that lasts 60 us on one and 30 on the other leaves 90 us, and the middle is 15 us off.
    EXPECT_EQ(traces[1].instructions[i].end - traces[0].instructions[i].end, -15 * kMicrosecond);
    EXPECT_EQ(traces[1].instructions[i].launch_begin - traces[0].instructions[i].launch_begin, -15 * kMicrosecond);
  }
}

}  // namespace
}  // namespace planwright
