// What tests of `plan diff` compare.
#pragma once

#include <string>
#include <vector>

#include "tests/support/folders.h"

namespace planwright::testing {

inline const std::string kTiny = InSource("recipes/nemotron_moe_vlm_tiny.yaml");
inline const std::string kToy = InSource("recipes/nemotron_moe_vlm_20l_mock_8r_toy.yaml");
inline const std::string kIcons = InSource("recipes/icons_8r_toy.yaml");

// Layouts of the tiny recipe that are planned but do not run yet: stages, context parallel, experts cut over ranks,
// recompute.
inline std::vector<std::vector<std::string>> PlannedLayouts() {
  const std::string language = "modules.language.", apart = language + "placement.first_rank=1";
  return {
      {apart, language + "placement.ranks=2", language + "parallel.pp=2"},
      {apart, language + "placement.ranks=8", language + "parallel.pp=2", language + "parallel.tp=2",
       language + "parallel.ep=2"},
      {apart, language + "placement.ranks=2", language + "parallel.cp=2"},
      {apart, language + "placement.ranks=4", language + "parallel.expert_tp=2", language + "parallel.ep=2"},
      {apart, language + "placement.ranks=4", language + "parallel.ep=4", language + "parallel.dispatch=all_gather"},
      {apart, language + "placement.ranks=4", language + "parallel.ep=4", language + "parallel.overlap_dispatch=true"},
      {language + "recompute=full"},
      {"modules.radio_encoder.recompute=block", language + "recompute=[moe, mamba]"},
      {"gradients.overlap_reduce=true", "gradients.overlap_gather=true", "gradients.buckets=2"}};
}

}  // namespace planwright::testing
