#include "planner/verify/slot_meanings.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/plan/op_table.h"

namespace planwright {

std::string SlotMeaningProblem(const TypedInstruction& typed, const Module& module) {
  const auto& endings = InfoOf(typed.instruction->kind).published;
  for (size_t i = 0; i < std::min(endings.size(), typed.parameters.size()); ++i) {
    const Storage& storage = *typed.parameters[i].storage;
    if (storage.parameters.empty()) continue;  // VerifyStorage
    const Parameter& parameter = module.parameters[static_cast<size_t>(storage.parameters.front())];
    // A key that collides with another is V9's to name.
    if (!parameter.name.ends_with(endings[i]) && !parameter.file_name.ends_with(endings[i])) {
      return absl::StrCat("reads ", parameter.name, " as its ", endings[i].substr(1));
    }
  }
  return "";
}

}  // namespace planwright
