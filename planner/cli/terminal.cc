#include "planner/cli/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace planwright {

bool WantsColor(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color && *no_color) return false;
  const char* terminal = std::getenv("TERM");
  return isatty(fd) && terminal && std::string_view(terminal) != "dumb";
}

}  // namespace planwright
