#include "planner/run/outcome/not_loaded.h"

#include <signal.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "planner/base/files/exit_status.h"

namespace planwright {
namespace {

// As the loader, the C library and the C++ library say it.
constexpr std::string_view kRefused[] = {"failed to map segment", "annot allocate memory", "std::bad_alloc"};

bool Says(const Failure& failure, std::string_view text) {
  return std::any_of(failure.last_lines.begin(), failure.last_lines.end(), [&](const LastLines& log) {
    return std::any_of(log.lines.begin(), log.lines.end(),
                       [&](const std::string& line) { return line.find(text) != std::string::npos; });
  });
}

}  // namespace

void TellIfNotLoaded(const ProcessEnd& end, Outcome& outcome) {
  const bool not_started = end.signal == 0 && (end.exit_status == 126 || end.exit_status == 127);
  const bool aborted = end.signal == SIGABRT && outcome.failure && outcome.failure->instruction.empty();
  if (!outcome.failure || (!not_started && !aborted)) return;
  const std::string who = "rank " + std::to_string(end.child);
  if (std::any_of(std::begin(kRefused), std::end(kRefused),
                  [&](std::string_view text) { return Says(*outcome.failure, text); })) {
    outcome.exit_code = kExitHostMemory;
    outcome.cause = who + " could not be loaded: host memory was refused (ulimit -v?)";
  } else if (not_started) {
    outcome.exit_code = kExitUsage;
    outcome.cause = who + " could not be loaded: its program ended with exit status " + std::to_string(end.exit_status);
  }
}

}  // namespace planwright
