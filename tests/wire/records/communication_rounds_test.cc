// Rounds of communications: who is in which group, and files that are read as they were written or refused.
#include "planner/wire/records/communication_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CommunicationRounds, CutsRanksIntoGroupsOfOneShape) {
  const auto members = [](int per_node, int nodes, int rank) {
    return MembersOf({.kind = OpKind::kAllReduce, .per_node = per_node, .nodes = nodes}, rank, 14, 4);
  };
  // Nodes of 4 ranks, of which the last has 2.
  EXPECT_THAT(members(2, 1, 5), ElementsAre(4, 5));
  EXPECT_THAT(members(2, 1, 13), ElementsAre(12, 13));
  EXPECT_THAT(members(4, 1, 6), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(members(4, 1, 12), IsEmpty());
  EXPECT_THAT(members(1, 2, 6), ElementsAre(2, 6));
  EXPECT_THAT(members(2, 2, 6), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(members(1, 2, 12), ElementsAre(8, 12));
  EXPECT_THAT(members(1, 2, 10), IsEmpty());  // its node of the pair has no such place
  EXPECT_THAT(members(3, 1, 1), ElementsAre(0, 1, 2));
  EXPECT_THAT(members(3, 1, 3), IsEmpty());
}

TEST(CommunicationRounds, AreReadAsTheyWereWritten) {
  const CommunicationRounds rounds = {
      .ranks_per_node = 8,
      .list = {{OpKind::kAllReduce, 4, 2, 4096, 7, 20}, {OpKind::kExchange, 1, 2, int64_t{1} << 30, 3, 1}}};
  const absl::StatusOr<CommunicationRounds> read = ReadRounds(RoundsJson(rounds));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ranks_per_node, 8);
  EXPECT_EQ(read->list, rounds.list);
}

TEST(CommunicationRounds, ThatCannotBeTimedAreRefused) {
  const CommunicationRound good = {OpKind::kAllGather, 2, 1, 4096, 7, 20};
  const auto refusal = [](const CommunicationRound& round) {
    return std::string(ReadRounds(RoundsJson({.list = {round}})).status().message());
  };
  EXPECT_EQ(refusal(good), "");
  const std::string no_communication = "rounds[0] is no communication that can be timed";
  for (auto change : std::vector<void (*)(CommunicationRound&)>{
           [](CommunicationRound& r) { r.kind = OpKind::kLinear; }, [](CommunicationRound& r) { r.per_node = 1; },
           [](CommunicationRound& r) { r.per_node = -2; }, [](CommunicationRound& r) { r.bytes = 0; },
           [](CommunicationRound& r) { r.batches = 0; }, [](CommunicationRound& r) { r.repetitions = 5000; },
           [](CommunicationRound& r) { r.kind = OpKind::kExchange, r.per_node = 4; }}) {
    CommunicationRound round = good;
    change(round);
    EXPECT_EQ(refusal(round), no_communication);
  }
  for (const char* text : {"", "[]", "{\"rounds\":[]}", "{\"ranks_per_node\":0,\"rounds\":[]}"})
    EXPECT_THAT(std::string(ReadRounds(text).status().message()), HasSubstr("not a list of rounds")) << text;
}

TEST(RoundTimes, AreReadAsTheyWereWrittenOrRefused) {
  const std::vector<std::vector<double>> seconds = {{1e-5, 2.5e-5}, {}, {3}};
  const absl::StatusOr<std::vector<std::vector<double>>> read = ReadRoundTimes(RoundTimesJson(seconds), 3);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, seconds);
  EXPECT_FALSE(ReadRoundTimes(RoundTimesJson(seconds), 2).ok());
  EXPECT_FALSE(ReadRoundTimes("{\"seconds\":[[\"1\"]]}", 1).ok());
  EXPECT_FALSE(ReadRoundTimes("{\"seconds\":[[-1]]}", 1).ok());
}

}  // namespace
}  // namespace planwright
