// Makes recipes for the cases of the reference system: its layouts, pipelines and schedules.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace planwright::testing {

struct GoldenModule {
  std::string name;
  int first_rank = 0, ranks = 1, tp = 1, cp = 1, pp = 1, ep = 1, expert_tp = 1;
  std::string extra;  // more keys of `parallel`: ", first_stage_layers: 2"
};

// A module from a case of the golden file.
inline GoldenModule ModuleOf(const nlohmann::json& m) {
  return {m.at("name"),     m.value("rank_offset", 0), m.at("num_ranks"),
          m.value("tp", 1), m.value("cp", 1),          m.value("pp", 1),
          m.value("ep", 1), m.value("expt_tp", 1),     ""};
}

struct GoldenRecipe {
  std::vector<GoldenModule> modules;  // the last one is the language model
  int world = 1;
  int64_t microbatches = 4, micro_samples = 1, language_lanes = 1;
  std::string pattern = "ME*EME*EME*E";  // empty: none is given
  std::string budget;                    // everything in `budget`; empty: a short one
  std::string gradients = "{}";
  int patch = 4, max_image = 64, pixel_shuffle = 2;
  std::string image_grids = "[[2, 2]]";
  std::vector<std::pair<std::string, std::string>> edges;  // of bridges; empty: from each encoder to the language model

  // The widths are multiples of all parallel sizes in the golden file.
  std::string Text() const {
    std::string text =
        "name: golden\nmodels:\n"
        "  vit: {kind: radio_vit, layers: 12, hidden: 64, heads: 16, ffn: 128, patch: " +
        std::to_string(patch) + ", class_tokens: 2, max_image: " + std::to_string(max_image) +
        ", pixel_shuffle: " + std::to_string(pixel_shuffle) +
        ", projector: {hidden: 64}}\n"
        "  lm:\n    kind: hybrid_lm\n" +
        (pattern.empty() ? "" : "    pattern: \"" + pattern + "\"\n") +
        "    hidden: 64\n    vocabulary: 1024\n"
        "    attention: {heads: 16, head_dim: 8, kv_groups: 8}\n    mamba: {heads: 16, head_dim: 8, groups: 8, state: "
        "8, conv: 4, chunk: 8}\n"
        "    moe: {experts: 128, top_k: 2, ffn: 32, shared_ffn: 32}\n"
        "cluster: {nodes: 1, gpus_per_node: " +
        std::to_string(world) + ", gpu: none}\nmodules:\n";
    for (const GoldenModule& m : modules) {
      text += "  " + m.name + ":\n    model: " + (&m == &modules.back() ? "lm" : "vit") +
              "\n    placement: {first_rank: " + std::to_string(m.first_rank) + ", ranks: " + std::to_string(m.ranks) +
              "}\n    parallel: {tp: " + std::to_string(m.tp) + ", cp: " + std::to_string(m.cp) +
              ", pp: " + std::to_string(m.pp) + ", ep: " + std::to_string(m.ep) +
              ", expert_tp: " + std::to_string(m.expert_tp) + m.extra + "}\n";
    }
    auto bridges = edges;
    for (size_t i = 0; edges.empty() && i + 1 < modules.size(); ++i)
      bridges.emplace_back(modules[i].name, modules.back().name);
    if (!bridges.empty()) text += "bridges:\n";
    for (size_t i = 0; i < bridges.size(); ++i) {
      text += "  - {from: " + bridges[i].first + ", to: " + bridges[i].second +
              (bridges.size() > 1 ? ", token: " + std::to_string(1023 - i) : "") + "}\n";
    }
    const int64_t global = microbatches * micro_samples * language_lanes;
    text += "batch: {global_samples: " + std::to_string(global) + ", micro_samples: " + std::to_string(micro_samples) +
            ", sequence_length: 64}\n";
    text += "budget: " +
            (budget.empty() ? "{train_samples: " + std::to_string(2 * global) + ", learning_rate: {peak: 1.0e-3}}"
                            : budget) +
            "\n";
    return text + "gradients: " + gradients +
           "\nprecision: {params: fp32}\ndata: {kind: mock, image_token: 1023, image_grids: " + image_grids + "}\n";
  }
};

}  // namespace planwright::testing
