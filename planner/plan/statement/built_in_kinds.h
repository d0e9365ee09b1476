// The texts of the kinds of models that come with this program: the files of planner/plan/kinds, which the build puts
// into it. CMakeLists.txt lists them.
#pragma once

#include <span>
#include <string_view>

namespace planwright {

struct KindText {
  std::string_view file;  // "planner/plan/kinds/hybrid_lm.model"
  std::string_view text;
};

// In the order in which pages and messages list kinds.
std::span<const KindText> BuiltInKinds();

}  // namespace planwright
