#include "planner/base/text/bug.h"

#include <cstdio>
#include <cstdlib>

namespace planwright {

void Bug(std::string_view message) {
  std::fprintf(stderr, "planwright bug: %.*s\nPlease report it with the recipe.\n", static_cast<int>(message.size()),
               message.data());
  std::abort();
}

}  // namespace planwright
