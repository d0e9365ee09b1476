// All spaces whose layouts were run, and how long their steps took: those of docs/gpu.md, docs/measure.md and
// docs/step_time.md, and those that were made to be compared.
#pragma once

#include <string>
#include <vector>

#include "tests/search/measured_on_purpose.h"
#include "tests/search/measured_space.h"

namespace planwright::testing {

inline const std::vector<MeasuredSpace>& MeasuredSpaces() {
  const Words no_dispatch = {"modules.language.parallel.overlap_dispatch=false"},
              dispatch = {"modules.language.parallel.overlap_dispatch=true"},
              no_gradients = {"gradients.overlap_reduce=false", "gradients.overlap_gather=false",
                              "gradients.buckets=1"},
              gradients = {"gradients.overlap_reduce=true", "gradients.overlap_gather=true", "gradients.buckets=8"},
              plain = no_dispatch + no_gradients, overlap = dispatch + gradients,
              all_to_all = {"modules.language.parallel.dispatch=all_to_all"},
              all_gather = {"modules.language.parallel.dispatch=all_gather"}, tp2 = {"modules.language.parallel.tp=2"},
              ep2 = {"modules.language.parallel.ep=2"}, tp2_images = tp2 + Words{"modules.radio_encoder.parallel.tp=2"},
              samples_2 = {"batch.micro_samples=2"};
  const auto recompute = [](const char* what) { return Words{std::string("modules.language.recompute=") + what}; };
  const Words of_h100 = {"cluster.gpu=h100_sxm", "models.nemotron_hybrid_moe_20l.moe.experts=16"};
  const auto samples = [](int count) {
    const std::string all = std::to_string(20 * count);
    return Words{"batch.global_samples=" + std::to_string(count), "budget.train_samples=" + all,
                 "budget.learning_rate.decay_samples=" + all};
  };
  const auto nodes = [](int count, int ranks) {
    return Words{"cluster.nodes=" + std::to_string(count), "cluster.gpus_per_node=" + std::to_string(ranks)};
  };
  const auto place = [](const char* module, int first, int ranks, const Words& axes) {
    const std::string key = std::string("modules.") + module + ".";
    Words words = {key + "placement.first_rank=" + std::to_string(first),
                   key + "placement.ranks=" + std::to_string(ranks)};
    for (const std::string& axis : axes) words.push_back(key + "parallel." + axis);
    return words;
  };
  const auto beside = [&](int ranks, const Words& language = {}) {
    return place("radio_encoder", 0, ranks, {}) + place("language", 0, ranks, language);
  };
  const auto apart = [&](int ranks, const Words& language) {
    return place("radio_encoder", 0, ranks, {}) + place("language", ranks, ranks, language);
  };
  const Words buckets = {"gradients.overlap_reduce=true", "gradients.buckets=4"};
  static constexpr char kTwo[] = "recipes/nemotron_moe_vlm_20l_2g_text_only.yaml",
                        kFour[] = "recipes/nemotron_moe_vlm_20l_4g_text_only.yaml",
                        kImages[] = "recipes/nemotron_moe_vlm_20l_4g.yaml",
                        kOne[] = "recipes/nemotron_moe_lm_20l_1g.yaml", kNodes[] = "tests/run/network/recipe.yaml";
  static const std::vector<MeasuredSpace> kOnPages = {
      {"two H200, text",
       kTwo,
       "h200_sxm",
       plain,
       {{"all_to_all", all_to_all, 1516}, {"all_gather", all_gather, 1486}},
       /*older=*/true},
      {"two other H200, text",
       kTwo,
       "h200_sxm",
       {},
       {{"no overlap", plain, 1449},
        {"of dispatch", dispatch + no_gradients, 1446},
        {"of gradients", no_dispatch + gradients, 1453},
        {"of both", overlap, 1428}},
       /*older=*/true},
      {"four H200, text",
       kFour,
       "h200_sxm",
       {},
       {{"ep 4, all_to_all", plain + all_to_all, 1463},
        {"ep 4, all_gather", plain + all_gather, 1473},
        {"tp 2, all_to_all", tp2 + plain + all_to_all, 1663},
        {"tp 2, all_gather", tp2 + plain + all_gather, 1685},
        {"ep 4, overlap", overlap, 1425},
        {"ep 2", ep2 + plain, 1457},
        {"ep 2, overlap", ep2 + overlap, 1410}},
       /*older=*/true},
      {"four H200, images",
       kImages,
       "h200_sxm",
       plain,
       {{"all_to_all", all_to_all, 3081},
        {"all_gather", all_gather, 3081},
        {"tp 2, all_to_all", tp2_images + all_to_all, 3794},
        {"tp 2, all_gather", tp2_images + all_gather, 3837}},
       /*older=*/true},
      {"one H200, text",
       kOne,
       "h200_sxm",
       {},
       {{"1 sample", {}, 1268}, {"2 samples", samples_2, 1212}},
       /*older=*/true},
      {"one H100, text, 4 samples",
       kOne,
       "h100_sxm",
       of_h100 + samples(4),
       {{"1 sample", {}, 623.7},
        {"recompute: full", recompute("full"), 748.6},
        {"recompute: elementwise", recompute("elementwise"), 631.8},
        {"2 samples", samples_2, 610.9}},
       /*older=*/true},
      {"another H100, text, 8 samples",
       kOne,
       "h100_sxm",
       of_h100,
       {{"1 sample", {}, 1219}, {"2 samples", samples_2, 1207}},
       /*older=*/true},
      {"four more H200, text",
       kFour,
       "h200_sxm",
       {},
       {{"ep 4", plain, 1479.8},
        {"ep 4, overlap", overlap, 1444.2},
        {"ep 2", ep2 + plain, 1467.6},
        {"ep 2, overlap", ep2 + overlap, 1419.0}}},
      {"two of these, text", kTwo, "h200_sxm", {}, {{"no overlap", plain, 1437.8}, {"of both", overlap, 1419.5}}},
      {"one more H200, 16 experts",
       kOne,
       "h200_sxm",
       Words{"models.nemotron_hybrid_moe_20l.moe.experts=16"} + samples(4),
       {{"1 sample", {}, 592.4},
        {"recompute: full", recompute("full"), 715.0},
        {"recompute: elementwise", recompute("elementwise"), 599.7},
        {"2 samples", samples_2, 581.8}}},
      {"2 nodes of CPU ranks",
       kNodes,
       nullptr,
       nodes(2, 1),
       {{"dp 2", beside(2), 732, 756},
        {"ep 2", beside(2, {"ep=2"}), 1968, 1943},
        {"ep 2, overlapped", beside(2, {"ep=2"}) + buckets, 2031, 1985},
        {"encoder apart", apart(1, {}), 175, 261}}},
      {"2 nodes of 2 CPU ranks",
       kNodes,
       nullptr,
       nodes(2, 2),
       {{"dp 4", beside(4), 1098, 1108},
        {"tp 2, dp 2", beside(4, {"tp=2"}) + Words{"modules.radio_encoder.parallel.tp=2"}, 1162, 1256},
        {"ep 2, dp 2", beside(4, {"ep=2"}), 1012, 953},
        {"ep 4", beside(4, {"ep=4"}), 1794, 1830},
        {"ep 4, overlapped", beside(4, {"ep=4"}) + buckets, 1765, 1896}}},
      {"4 nodes of 2 CPU ranks",
       kNodes,
       nullptr,
       nodes(4, 2),
       {{"dp 8", beside(8), 2241, 2245},
        {"ep 2, dp 4", beside(8, {"ep=2"}), 2221, 2103},
        {"ep 8", beside(8, {"ep=8"}), 3482, 3671},
        {"encoder apart, pp 2, tp 2", apart(4, {"pp=2", "tp=2"}), 1000, 1015},
        {"encoder apart, cp 2, tp 2", apart(4, {"cp=2", "tp=2"}), 2650, 2445}}},
      {"8 nodes of CPU ranks",
       kNodes,
       nullptr,
       nodes(8, 1),
       {{"dp 8", beside(8), 1254, 1145},
        {"ep 8", beside(8, {"ep=8"}), 1620, 1602},
        {"encoder apart, pp 4", apart(4, {"pp=4"}), 614, 573},
        {"encoder apart, dp 4", apart(4, {}), 825, 784}}},
  };
  static const std::vector<MeasuredSpace> kSpaces = kOnPages + SpacesOnPurpose();
  return kSpaces;
}

}  // namespace planwright::testing
