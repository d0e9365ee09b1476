// Tokens that are gathered to the ranks of experts instead of sent to them, with all that surrounds experts.
#include "tests/numerics/layouts.h"

namespace planwright::testing {

// How tokens reach experts is no part of what is trained: one rank has neither kind.
std::vector<Layout> DispatchLayouts() {
  const std::vector<std::string> encoder = EncoderOn(1, 1),
                                 gathered = {"modules.language.parallel.dispatch=all_gather"},
                                 overlapped = {"modules.language.parallel.overlap_dispatch=true"},
                                 both = Join(gathered, overlapped);
  // As in expert_tp.cc: ranks get far more rows than the mean, or none.
  const std::vector<std::string> uneven = {"models.hybrid_moe_tiny.moe.bias_rate=1.0",
                                           "models.hybrid_moe_tiny.moe.top_k=1",
                                           "models.hybrid_moe_tiny.moe.normalized=false"};
  return {
      {"gathered_ep2", Join(encoder, LanguageOn(1, 2, 1, 2), gathered)},
      {"gathered_ep4_tp2", Join(encoder, LanguageOn(1, 4, 2, 4), gathered)},
      {"gathered_ep4_dp4_two_samples", Join(encoder, LanguageOn(1, 4, 1, 4), gathered), {"batch.micro_samples=2"}},
      {"gathered_ep2_expert_dp2", Join(encoder, LanguageOn(1, 4, 2, 2), gathered)},
      {"gathered_ep4_cp2_tp2",
       Join(encoder, LanguageOn(1, 4, 2, 4), Join(gathered, Parallel("language", {{"cp", 2}}))),
       {"models.hybrid_moe_tiny.mamba.groups=4", "models.hybrid_moe_tiny.attention.kv_groups=4"}},
      {"gathered_ep2_expert_tp2_tp2",
       Join(encoder, LanguageOn(1, 4, 2, 2), Join(gathered, Parallel("language", {{"expert_tp", 2}})))},
      {"gathered_ep4_expert_tp2_uneven",
       Join(encoder, LanguageOn(1, 8, 2, 4), Join(gathered, Parallel("language", {{"expert_tp", 2}}))), uneven},
      {"gathered_recompute_moe_ep4",
       Join(encoder, LanguageOn(1, 4, 2, 4), Join(gathered, {"modules.language.recompute=[moe]"}))},
      {"gathered_recompute_full_ep2",
       Join(encoder, LanguageOn(1, 2, 1, 2), Join(gathered, {"modules.language.recompute=[full]"}))},
      {"gathered_documents_ep4_tp2", Join(encoder, LanguageOn(1, 4, 2, 4), gathered), {"data.packed_documents=true"}},
      {"gathered_frozen_language",
       Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2), gathered),
       {"modules.language.train.backbone=frozen"}},
      {"gathered_pp2_ep2", Join(encoder, LanguageOn(1, 4, 1, 2), Join(gathered, Parallel("language", {{"pp", 2}})))},
      {"gathered_colocated", Join(EncoderOn(4, 1), LanguageOn(0, 4, 2, 4), gathered)},
      {"overlapped_ep2", Join(encoder, LanguageOn(1, 2, 1, 2), overlapped)},
      {"overlapped_gathered_ep2", Join(encoder, LanguageOn(1, 2, 1, 2), both)},
      {"overlapped_ep2_tp2_uneven", Join(encoder, LanguageOn(1, 4, 2, 2), overlapped), uneven},
      {"overlapped_gathered_ep4_tp2", Join(encoder, LanguageOn(1, 4, 2, 4), both)},
      {"overlapped_ep2_expert_tp2",
       Join(encoder, LanguageOn(1, 4, 1, 2), Join(overlapped, Parallel("language", {{"expert_tp", 2}})))},
      {"overlapped_gathered_ep2_expert_tp2",
       Join(encoder, LanguageOn(1, 4, 1, 2), Join(both, Parallel("language", {{"expert_tp", 2}})))},
      {"overlapped_ep2_cp2",
       Join(encoder, LanguageOn(1, 2, 1, 2), Join(overlapped, Parallel("language", {{"cp", 2}})))},
      {"overlapped_pp2_ep2",
       Join(encoder, LanguageOn(1, 4, 1, 2), Join(overlapped, Parallel("language", {{"pp", 2}})))},
      {"overlapped_gathered_frozen_language",
       Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2), both),
       {"modules.language.train.backbone=frozen"}},
      {"overlapped_recompute_moe_ep4",
       Join(encoder, LanguageOn(1, 4, 2, 4), Join(overlapped, {"modules.language.recompute=[moe]"}))},
      {"overlapped_gathered_recompute_full_colocated",
       Join(EncoderOn(4, 1), LanguageOn(0, 4, 2, 4), Join(both, {"modules.language.recompute=[full]"}))},
  };
}

}  // namespace planwright::testing
