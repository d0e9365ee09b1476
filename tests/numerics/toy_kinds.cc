// The kinds of a program whose language model is the toy, in place of those that the build puts into a program.
#include <string>

#include "planner/plan/statement/built_in_kinds.h"
#include "tests/plan/statement/toy_kind.h"

namespace planwright {

std::span<const KindText> BuiltInKinds() {
  static const std::string language = testing::ToyKind(), encoder = testing::StatementText("radio_vit");
  static const KindText kinds[] = {{"radio_vit.model", encoder}, {"toy.model", language}};
  return kinds;
}

}  // namespace planwright
