// The kinds of a program whose language model is the toy, in place of those that the build puts into a program.
#include <string>

#include "planner/base/files/file_io.h"
#include "planner/plan/statement/built_in_kinds.h"
#include "tests/plan/statement/toy_kind.h"
#include "tests/support/folders.h"

namespace planwright {

std::span<const KindText> BuiltInKinds() {
  constexpr std::string_view kEncoder = "planner/plan/kinds/radio_vit.model";
  static const std::string language = testing::ToyKind(),
                           encoder = ReadWholeFile(InSource(std::string(kEncoder)), 1 << 20).value_or("");
  static const KindText kinds[] = {{kEncoder, encoder}, {"toy.model", language}};
  return kinds;
}

}  // namespace planwright
