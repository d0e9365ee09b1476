// What tests of `plan diff` compare.
#pragma once

#include <string>
#include <vector>

namespace planwright::testing {

inline constexpr char kTiny[] = PLANWRIGHT_SOURCE_DIR "/recipes/nemotron_moe_vlm_tiny.yaml";
inline constexpr char kToy[] = PLANWRIGHT_SOURCE_DIR "/recipes/nemotron_moe_vlm_20l_mock_8r_toy.yaml";
inline constexpr char kIcons[] = PLANWRIGHT_SOURCE_DIR "/recipes/icons_8r_toy.yaml";

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
