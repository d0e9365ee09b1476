// Folders of weights that are damaged, incomplete or of another model, each with the exact message of a launch and of
// `plan weights`.
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "planner/state/weights/fit.h"
#include "planner/state/weights/read_values.h"
#include "tests/state/weights/damage_cases.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

class Damage : public ::testing::TestWithParam<DamageCase> {};
INSTANTIATE_TEST_SUITE_P(All, Damage, ::testing::ValuesIn(DamageCases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Damage, HasItsMessage) {
  const TestFolder folder;
  const std::string path = folder.path() + "/F";
  // Few layers keep the folder small.
  const Plan plan =
      CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
                   {"models.hybrid_moe_tiny.pattern=M*E", "models.radio_vit_tiny.layers=1", "initialize.from=" + path});
  RawTensors tensors = TensorsOf(plan, "BF16");
  if (GetParam().tensors) GetParam().tensors(tensors);
  WriteFolder(path, tensors, 2);
  if (GetParam().damage) GetParam().damage(path);
  WeightsFit fit = FitWeights(plan);
  std::vector<std::string> lines = fit.problems;
  if (fit.fits()) lines = ReadAllValues(plan, fit, 2).problems;
  EXPECT_EQ(absl::StrReplaceAll(absl::StrJoin(lines, "\n"), {{path, "F"}}), GetParam().message);
}

}  // namespace
}  // namespace planwright::testing
