#include "planner/plan/value_type.h"

#include <gtest/gtest.h>

namespace planwright {
namespace {

TEST(ValueType, WritesTypeLayoutAndGradient) {
  ValueType type{DType::kFp32, {int64_t{24}, int64_t{1}, std::string("rows")}, {}, Layout{}, false};
  type.layout[Axis::kTp] = {AxisLayout::State::kSharded, 0};
  (*type.gradient)[Axis::kTp] = {AxisLayout::State::kPartial, 0};
  EXPECT_EQ(OutputText({"x", type}), "x: fp32[24,1,rows] tp:shard0 | tp:partial");
}

TEST(ValueType, ReadsBackWhatItWrites) {
  for (const char* text :
       {"fp64[]", "int64[4] host", "bf16[2,rows] |", "fp32[8] ep:shard0 expert_dp:partial | tp:replicated"}) {
    std::optional<ValueType> type = TypeFromText(text);
    ASSERT_TRUE(type.has_value()) << text;
    EXPECT_EQ(TypeText(*type), text);
  }
}

TEST(ValueType, RefusesWhatItWouldNotWrite) {
  for (const char* text : {"", "fp32", "fp31[4]", "fp32[4", "fp32[4,]", "fp32[4] ", "fp32[4] tp", "fp32[4] zp:shard0",
                           "fp32[4] tp:shard", "fp32[4] tp:shard-1", "fp32[4] | |", "fp32[4] tp:partial tp:partial",
                           "fp32[a[4]", "fp32[a b]", "fp32[4]tp:partial", "fp32[4] | host"}) {
    EXPECT_FALSE(TypeFromText(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace planwright
