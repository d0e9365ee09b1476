// The lists of `tests/gpu/measure --parts regret,regret_2g` (docs/gpu.md#which-layout-is-the-fastest), as they were run
// on one H200 and on two of one host: medians of 5 steps of 8, made to be compared.
#pragma once

#include <string>
#include <vector>

#include "tests/search/measured_space.h"

namespace planwright::testing {

inline std::vector<MeasuredSpace> SpacesOnPurpose() {
  static constexpr char kH200[] = "h200_sxm";
  const auto micro = [](int samples) { return Words{"batch.micro_samples=" + std::to_string(samples)}; };
  const auto axes = [](const Words& sizes, const char* module = "language") {
    Words words;
    for (const std::string& size : sizes) words.push_back(std::string("modules.") + module + ".parallel." + size);
    return words;
  };
  const auto recompute = [](const char* what, const Words& modules = {"language"}) {
    Words words;
    for (const std::string& module : modules) words.push_back("modules." + module + ".recompute=" + what);
    return words;
  };
  const auto overlap = [](int buckets) {
    return Words{"gradients.overlap_reduce=true", "gradients.overlap_gather=true",
                 "gradients.buckets=" + std::to_string(buckets)};
  };
  // One GPU for each.
  const auto apart = [](const std::string& encoder) {
    Words words;
    for (const std::string& module : {encoder, std::string("language")}) {
      const std::string key = "modules." + module + ".placement.";
      words = words + Words{key + "ranks=1", key + "first_rank=" + (module == encoder ? "0" : "1")};
    }
    return words;
  };
  const Words elementwise = recompute("elementwise"), both_images = {"vision_encoder", "language"},
              gather = axes({"ep=2", "dispatch=all_gather"}), to_all = axes({"ep=2", "dispatch=all_to_all"}),
              of_dispatch = axes({"ep=2", "overlap_dispatch=true"}), tp2_ep2 = axes({"tp=2", "ep=2"});
  return {
      {"one H200, 128 experts",
       "tests/gpu/spaces/experts_1g.yaml",
       kH200,
       {},
       {{"2 samples", micro(2), 261.9},
        {"4 samples", micro(4), 247.4},
        {"8 samples", micro(8), 239.2},
        {"8 samples, elementwise", micro(8) + elementwise, 239.5},
        {"8 samples, attention", micro(8) + recompute("attention"), 255.0}}},
      {"one H200, decoder",
       "tests/gpu/spaces/dense_1g.yaml",
       kH200,
       {},
       {{"2 samples", micro(2), 279.2},
        {"4 samples", micro(4), 269.3},
        {"8 samples", micro(8), 264.2},
        {"8 samples, elementwise", micro(8) + elementwise, 271.3}}},
      {"one H200, DeepStack",
       "tests/gpu/spaces/deepstack_1g.yaml",
       kH200,
       {},
       {{"2 samples", micro(2), 464.7},
        {"4 samples", micro(4), 456.0},
        {"8 samples", micro(8), 448.9},
        {"8 samples, elementwise", micro(8) + recompute("elementwise", both_images), 455.3}}},
      {"one H200, images",
       "tests/gpu/spaces/hybrid_images_1g.yaml",
       kH200,
       {},
       {{"1 sample", micro(1), 448.7},
        {"2 samples", micro(2), 444.1},
        {"4 samples", micro(4), 441.5},
        {"4 samples, elementwise", micro(4) + recompute("elementwise", {"radio_encoder", "language"}), 450.1},
        {"1 sample, block", micro(1) + recompute("block", {"radio_encoder"}), 491.1}}},
      {"one H200, adapters",
       "tests/gpu/spaces/adapters_1g.yaml",
       kH200,
       {},
       {{"2 samples", micro(2), 469.6},
        {"4 samples", micro(4), 469.4},
        {"8 samples", micro(8), 470.7},
        {"4 samples, elementwise", micro(4) + elementwise, 473.7},
        {"8 samples, elementwise", micro(8) + elementwise, 474.9}}},
      {"one H200, short samples",
       "tests/gpu/spaces/short_1g.yaml",
       kH200,
       {},
       {{"8 samples", micro(8), 247.7}, {"16 samples", micro(16), 247.2}, {"32 samples", micro(32), 242.6}}},
      {"two H200, decoder",
       "tests/gpu/spaces/dense_2g.yaml",
       kH200,
       {},
       {{"dp 2, 4 samples", micro(4), 333.8},
        {"dp 2, 4 samples, overlap", micro(4) + overlap(8), 328.4},
        {"dp 2, 2 samples, overlap", micro(2) + overlap(8), 328.2},
        {"tp 2, 8 samples", axes({"tp=2"}) + micro(8), 342.6},
        {"cp 2, 8 samples", axes({"cp=2"}) + micro(8), 374.2},
        {"pp 2, 1 sample", axes({"pp=2", "stage_layers=[9,3]"}), 358.8}}},
      {"two H200, 128 experts",
       "tests/gpu/spaces/experts_2g.yaml",
       kH200,
       {},
       {{"ep 1, 4 samples, overlap", micro(4) + overlap(4), 250.3},
        {"ep 2, 4 samples, all_gather", gather + micro(4), 273.7},
        {"ep 2, 8 samples, all_gather", gather + micro(8), 266.3},
        {"ep 2, 8 samples, all_to_all", to_all + micro(8), 276.1},
        {"tp 2, ep 2, 8 samples", tp2_ep2 + micro(8), 278.6},
        {"pp 2, 2 samples", axes({"pp=2", "stage_layers=[7,1]"}) + micro(2), 277.7}}},
      {"two H200, long samples",
       "tests/gpu/spaces/long_2g.yaml",
       kH200,
       {},
       {{"dp 2", {}, 471.3},
        {"dp 2, overlap", overlap(4), 471.0},
        {"dp 2, elementwise", elementwise, 473.6},
        {"cp 2, 2 samples", axes({"cp=2"}) + micro(2), 683.0},
        {"tp 2, 2 samples", axes({"tp=2"}) + micro(2), 507.8}}},
      {"two H200, hybrid",
       "tests/gpu/spaces/hybrid_2g.yaml",
       kH200,
       {},
       {{"ep 1, overlap", overlap(4), 416.0},
        {"ep 2, all_to_all", to_all + overlap(4), 468.8},
        {"ep 2, all_gather", gather + overlap(4), 460.9},
        {"ep 2, of dispatch", of_dispatch, 455.0},
        {"ep 2, of both", of_dispatch + overlap(4), 453.5},
        {"tp 2, ep 2, 2 samples", tp2_ep2 + micro(2), 483.5}}},
      {"two H200, hybrid, images",
       "tests/gpu/spaces/hybrid_images_2g.yaml",
       kH200,
       {},
       {{"ep 1, overlap", overlap(4), 463.4},
        {"ep 2", axes({"ep=2"}), 484.2},
        {"ep 2, 2 samples", axes({"ep=2"}) + micro(2), 477.5},
        {"tp 2, ep 2, 2 samples", axes({"tp=2"}, "radio_encoder") + tp2_ep2 + micro(2), 530.7},
        {"encoder apart", apart("radio_encoder"), 527.9}}},
      {"two H200, DeepStack",
       "tests/gpu/spaces/deepstack_2g.yaml",
       kH200,
       {},
       {{"dp 2, 2 samples, overlap", micro(2) + overlap(4), 406.1},
        {"dp 2, 4 samples", micro(4), 400.2},
        {"dp 2, 8 samples", micro(8), 392.2},
        {"dp 2, 8 samples, elementwise", micro(8) + recompute("elementwise", both_images), 400.2},
        {"encoder apart", apart("vision_encoder"), 454.9}}},
  };
}

}  // namespace planwright::testing
