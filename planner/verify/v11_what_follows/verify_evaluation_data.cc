// V11 of evaluation sets: the data of each is that of the training, but for where its samples come from. So a set has
// the tokens, image sizes and lengths that the programs are made for.
//
// Not here: that a set is not made of samples of the training, which only its files can say.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;

bool Same(const EncoderData& a, const EncoderData& b) {
  return a.module == b.module && a.token == b.token && a.patch == b.patch && a.pixel_shuffle == b.pixel_shuffle &&
         a.max_image == b.max_image && a.pixels == b.pixels;
}

// The first field that differs, or "".
const char* Difference(const DataPlan& set, const DataPlan& trained) {
  const std::pair<const char*, bool> fields[] = {
      {"kind", set.kind == trained.kind},
      // Mock samples are drawn: another seed makes other samples of the same kind.
      {"seed", RowOf(set.kind).drawn || set.seed == trained.seed},
      {"image_token", set.image_token == trained.image_token},
      {"pad_token", set.pad_token == trained.pad_token},
      {"end_token", set.end_token == trained.end_token},
      {"vocabulary", set.vocabulary == trained.vocabulary},
      {"image_grids", set.image_grids == trained.image_grids},
      {"min_images", set.min_images == trained.min_images},
      {"max_images", set.max_images == trained.max_images},
      {"classes", set.classes == trained.classes},
      {"text_tokens", set.text_tokens == trained.text_tokens},
      {"window", set.window == trained.window},
      {"min_patches", set.min_patches == trained.min_patches},
      {"max_patches", set.max_patches == trained.max_patches},
      {"resize", set.resize == trained.resize},
      {"grid", set.grid == trained.grid},
      {"orientation", set.orientation == trained.orientation},
      {"sources", set.sources.empty() == trained.sources.empty()},
      {"tokenizer", set.tokenizer == trained.tokenizer},
      {"tokenizer_digest", set.tokenizer_digest == trained.tokenizer_digest},
      {"template_digest", set.template_digest == trained.template_digest},
      {"shuffle", set.shuffle == trained.shuffle},
      {"packing", set.packing == trained.packing},
      {"long", set.long_documents == trained.long_documents},
      {"damaged", set.damaged == trained.damaged},
      {"most_damaged", set.most_damaged == trained.most_damaged},
      {"packed_documents", set.packed_documents == trained.packed_documents},
      {"encoders",
       std::equal(set.encoders.begin(), set.encoders.end(), trained.encoders.begin(), trained.encoders.end(), Same)},
  };
  for (const auto& [field, same] : fields) {
    if (!same) return field;
  }
  return "";
}

}  // namespace

std::vector<Violation> VerifyEvaluationData(const Plan& plan) {
  std::vector<Violation> violations;
  for (const EvaluationSet& set : plan.evaluation.sets) {
    const string field = Difference(set.data, plan.data);
    if (field.empty()) continue;
    violations.push_back(
        {"V11", absl::StrCat("evaluation set ", set.name, " has another ", field, " than the data of the training"),
         -1});
  }
  return violations;
}

}  // namespace planwright
