// What tp does not divide: key heads that several ranks share, and a vocabulary that is padded in storage.
#include "tests/numerics/layouts.h"

namespace planwright::testing {
namespace {

// Groups of Mamba for tp x cp of 4; the tiny models have 2 key heads.
constexpr char kGroups[] = "models.hybrid_moe_tiny.mamba.groups=4",
               kOneKey[] = "models.hybrid_moe_tiny.attention.kv_groups=1",
               kIds[] = "models.hybrid_moe_tiny.vocabulary=259";

Layout Text(const std::string& name, const std::vector<std::string>& overrides,
            const std::vector<std::string>& training) {
  return {name, overrides, training, kTextRecipe, {}};
}

}  // namespace

std::vector<Layout> UndividedLayouts() {
  const std::vector<std::string> cp2 = Parallel("language", {{"cp", 2}}), pp2 = Parallel("language", {{"pp", 2}});
  return {
      Text("shared_keys_tp4", LanguageOn(0, 4, 4, 1), {kGroups}),
      Text("shared_keys_tp2", LanguageOn(0, 2, 2, 2), {kOneKey}),
      Text("undivided_tp2_cp2", Join(LanguageOn(0, 4, 2, 2), cp2), {kGroups, kOneKey, kIds}),
      Text("undivided_tp4_cp2", Join(LanguageOn(0, 8, 4, 1), cp2), {"models.hybrid_moe_tiny.mamba.groups=8", kIds}),
      Text("undivided_tp4_pp2", Join(LanguageOn(0, 8, 4, 4), pp2), {kGroups, kIds}),
      Text("padded_vocabulary_tp2", LanguageOn(0, 2, 2, 2), {kIds}),
      Text("padded_vocabulary_tp2_dp2_ep4", LanguageOn(0, 4, 2, 4), {kIds}),
      {"undivided_documents",
       Join(EncoderOn(1, 1), Join(LanguageOn(1, 2, 2, 2), {"modules.language.recompute=[full]"})),
       {kOneKey, kIds, "data.packed_documents=true"}},
      {"undivided_documents_cp2",
       Join(EncoderOn(1, 1), Join(LanguageOn(1, 4, 2, 2), cp2, {"modules.language.recompute=[attention]"})),
       {kGroups, kOneKey, kIds, "data.packed_documents=true"}},
      {"undivided_frozen_language",
       Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2)),
       {kOneKey, kIds, "modules.language.train.backbone=frozen"}},
      {"undivided_colocated", Join(EncoderOn(4, 2), LanguageOn(0, 4, 4, 4)), {kGroups, kIds}},
  };
}

}  // namespace planwright::testing
