#include "planner/verify/slot_meanings.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

// Endings of published names, in the order of the operands (op_kind.def).
const std::vector<std::string_view>& EndingsOf(OpKind kind) {
  static const std::vector<std::string_view> kNorm = {".weight", ".bias"}, kScan = {".A_log", ".D", ".dt_bias"},
                                             kScale = {".weight"}, kExperts = {".up_proj.weight", ".down_proj.weight"}, kNone;
  switch (kind) {
    case OpKind::kLayerNorm: return kNorm;
    case OpKind::kLayerNormGrad: return kScale;
    case OpKind::kMambaScan: return kScan;
    case OpKind::kExperts: return kExperts;
    default: return kNone;
  }
}

}  // namespace

std::string SlotMeaningProblem(const TypedInstruction& typed, const Module& module) {
  const auto& endings = EndingsOf(typed.instruction->kind);
  for (size_t i = 0; i < std::min(endings.size(), typed.parameters.size()); ++i) {
    const Storage& storage = *typed.parameters[i].storage;
    if (storage.parameters.empty()) continue;  // VerifyStorage
    const Parameter& parameter = module.parameters[static_cast<size_t>(storage.parameters.front())];
    // A key that collides with another is V9's to name.
    if (!parameter.name.ends_with(endings[i]) && !parameter.file_name.ends_with(endings[i])) {
      return absl::StrCat("reads ", parameter.name, " as its ", std::string(endings[i].substr(1)));
    }
  }
  return "";
}

}  // namespace planwright
