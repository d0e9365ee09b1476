#include "planner/plan/op_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace planwright {
namespace {

double Value(const char* formula) {
  return Expression(formula).Evaluate([](const std::string& name) {
    return name == "mamba.heads" ? 8.0 : name == "tp" ? 2.0 : std::nan("");
  });
}

TEST(Expression, Evaluates) {
  EXPECT_EQ(Value("2 + 3 * 4"), 14);
  EXPECT_EQ(Value("(2 + 3) * 4 - 1"), 19);
  EXPECT_EQ(Value("mamba.heads / tp / 2"), 2);
  EXPECT_EQ(Value("tp > 1"), 1);
  EXPECT_EQ(Value("tp > 2"), 0);
  EXPECT_TRUE(std::isnan(Value("mamba.heads * nobody")));
  EXPECT_TRUE(std::isnan(Value("nobody > 1")));
  EXPECT_EQ(Expression("rows(i0) * tp * rows(i0)").names(), (std::vector<std::string>{"rows(i0)", "tp"}));
}

TEST(OpTable, EveryKindSaysWhatItDoes) {
  std::set<std::string_view> names;
  for (const OpInfo& info : AllOps()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(&InfoOf(info.kind), &info);
    EXPECT_EQ(OpName(info.kind), info.name);
    EXPECT_FALSE(info.does.empty()) << info.name;
    // A slice is a change of layout: its rule is that of communication.
    const bool slices = info.kind == OpKind::kLocalSlice || info.kind == OpKind::kSliceRows;
    EXPECT_EQ(info.operands.empty(), info.op_class != OpClass::kCompute || slices) << info.name;
    EXPECT_EQ(info.effects.empty(), info.op_class != OpClass::kState) << info.name;
    std::set<std::string> attributes;
    for (const AttributeSpec& spec : info.attributes)
      EXPECT_TRUE(attributes.insert(spec.name).second) << info.name << " " << spec.name;
    for (const OpInfo::Transpose& transpose : info.transposes)
      EXPECT_TRUE(OpFromName(transpose.forward).has_value()) << info.name;
  }
}

// A rule judges what each does to layouts: the one that its words make, or one of its own.
TEST(OpTable, EveryCommunicationSaysWhatItMovesOrHasItsOwnRule) {
  const std::set<OpKind> own = {OpKind::kAllToAll, OpKind::kAllToAllV, OpKind::kAllGatherV, OpKind::kReduceScatterV,
                                OpKind::kReshard,  OpKind::kBroadcast, OpKind::kExchange};
  for (const OpInfo& info : AllOps()) {
    const bool moves =
        (info.op_class == OpClass::kCommunication && !own.contains(info.kind)) || info.kind == OpKind::kLocalSlice;
    EXPECT_EQ(info.moves.has_value(), moves) << info.name;
    if (info.moves && !info.moves->dim.empty()) {
      EXPECT_NE(info.FindAttribute(info.moves->dim), nullptr) << info.name;
    }
  }
}

TEST(OpTable, ReferenceIsInStep) {
  const std::string path = PLANWRIGHT_SOURCE_DIR "/docs/operations.md", made = OperationsReference();
  if (std::getenv("UPDATE_GOLDENS") != nullptr) std::ofstream(path, std::ios::binary) << made;
  std::ifstream in(path, std::ios::binary);
  const std::string written(std::istreambuf_iterator<char>(in), {});
  EXPECT_TRUE(written == made)
      << "docs/operations.md is out of step: write it again with `plan explain --operations > docs/operations.md`";
}

}  // namespace
}  // namespace planwright
