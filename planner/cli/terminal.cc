#include "planner/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "planner/base/text/utf8.h"

namespace planwright {

bool WantsColor(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color && *no_color) return false;
  const char* terminal = std::getenv("TERM");
  return isatty(fd) && terminal && std::string_view(terminal) != "dumb";
}

size_t LineWidth(int fd, size_t most) {
  constexpr size_t kLeast = 40;
  const char* columns = std::getenv("COLUMNS");
  size_t width = columns ? std::strtoul(columns, nullptr, 10) : 0;
  winsize window = {};
  if (width == 0 && isatty(fd) && ioctl(fd, TIOCGWINSZ, &window) == 0) width = window.ws_col;
  return width == 0 ? most : std::clamp(width, kLeast, most);
}

bool CanAsk() { return isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0; }

bool Ask(const std::string& question) {
  std::cerr << Printable(question) << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace planwright
