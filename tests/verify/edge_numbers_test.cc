// Puts edge values in place of every kind of number in a plan file. The plan must be refused, or read and verified, and
// then its step is predicted; nothing may overflow, divide by zero or run for ever. Overflows show in a build with
// sanitizers.
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "planner/compile/compile.h"
#include "planner/plan/plan_json.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/verify/verify.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

// Reads a changed plan as if its digest were right. The message of ReadPlan says which digest the contents have.
absl::StatusOr<Plan> ReadWithItsDigest(Json& json) {
  json["digest"] = std::string(64, '0');
  absl::StatusOr<Plan> plan = ReadPlan(json.dump());
  const std::string saying = "its contents give ", message(plan.status().message());
  const size_t said = message.find(saying);
  if (said == std::string::npos) return plan;
  json["digest"] = message.substr(said + saying.size(), 64);
  return ReadPlan(json.dump());
}

class EdgeNumbers : public ::testing::Test {
 protected:
  // Tries the edge values at one number, and at one type ("x: fp32[4,8]"), of each field of each kind of operation.
  void Visit(Json& json, const std::string& path) {
    if (json.is_structured()) {
      const std::string here =
          json.is_object() && json.contains("op") ? path + ":" + json["op"].get<std::string>() : path;
      for (auto it = json.begin(); it != json.end(); ++it) Visit(*it, json.is_object() ? here + "." + it.key() : here);
    } else if (json.is_number() && seen_.insert(path).second) {
      json.is_number_integer() ? TryNumber(json) : TryReal(json);
    } else if (json.is_string() && json.get<std::string>().find(": ") != std::string::npos &&
               seen_.insert(path).second) {
      TryDim(json);
    }
  }

  void TryNumber(Json& number) {
    const Json old = number;
    for (int64_t edge : {int64_t{0}, int64_t{-1}, int64_t{INT_MAX}, int64_t{INT_MIN}, INT64_MAX, int64_t{1} << 36}) {
      number = edge;
      ReadAndVerify();
    }
    number = old;
  }

  void TryReal(Json& number) {
    const Json old = number;
    for (double edge : {0.0, -0.0, -1.0, 5e-324, 1e-308, 1e-30, 1e30, 1e307, 1.7976931348623157e308}) {
      number = edge;
      ReadAndVerify();
    }
    number = old;
  }

  // Tries edge values as the first dim of a type such as "x: fp32[4,8] tp:shard0".
  void TryDim(Json& value) {
    const std::string old = value;
    const size_t open = old.find('['), end = old.find_first_of(",]", open);
    if (open == std::string::npos || end == std::string::npos) return;
    for (const char* edge : {"0", "-1", "9223372036854775807", "-9223372036854775808", "68719476736", "rows["}) {
      value = old.substr(0, open + 1) + edge + old.substr(end);
      ReadAndVerify();
    }
    value = old;
  }

  void ReadAndVerify() {
    const absl::StatusOr<Plan> plan = ReadWithItsDigest(plan_);
    if (!plan.ok()) return;
    ++read_;
    if (!VerifyPlan(*plan).empty()) return;
    const StepTime time = TimeStep(*plan);
    EXPECT_TRUE(std::isfinite(time.length)) << plan_.dump().substr(0, 200);
  }

  Json plan_;
  std::set<std::string> seen_;
  int read_ = 0;  // plans that the reader accepted
};

TEST_F(EdgeNumbers, AreRefusedOrVerified) {
  Recipe recipe = testing::TinyRecipe({2, 2, 4, 2, 4, false});
  // With all figures of a device, so that steps have a time.
  recipe.cluster.gpu = std::string("other");
  DeviceRecipe& device = recipe.cluster.device;
  device.memory = device.peak = device.bandwidth = device.link = device.network = Located(80.0);
  Diagnostics diagnostics;
  const std::optional<Plan> plan = CompileRecipe(recipe, diagnostics);
  ASSERT_TRUE(plan.has_value());
  plan_ = Json::parse(WritePlan(*plan));
  ASSERT_TRUE(ReadWithItsDigest(plan_).ok());
  Visit(plan_, "");
  EXPECT_GT(seen_.size(), 100u);
  EXPECT_GT(read_, 100);  // else the reader refuses everything and the rules are not tested
}

// Only the layers in which tokens are gathered: the rest is that of other plans.
TEST_F(EdgeNumbers, OfGatheredTokensAreRefusedOrVerified) {
  Recipe recipe = testing::TinyRecipe({2, 2, 4, 2, 4, false});
  recipe.modules[1].dispatch = std::string("all_gather");
  Diagnostics diagnostics;
  const std::optional<Plan> plan = CompileRecipe(recipe, diagnostics);
  ASSERT_TRUE(plan.has_value());
  plan_ = Json::parse(WritePlan(*plan));
  ASSERT_TRUE(ReadWithItsDigest(plan_).ok());
  for (Json& block : plan_["blocks"]) {
    if (block["name"].get<std::string>().starts_with("language.moe.")) Visit(block, "block");
  }
  EXPECT_GT(seen_.size(), 20u);
  EXPECT_GT(read_, 20);
}

}  // namespace
}  // namespace planwright
