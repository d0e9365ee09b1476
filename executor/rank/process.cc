#include "executor/rank/process.h"

#include <ATen/Parallel.h>

#include <csignal>
#include <exception>

#include "executor/rank/host_memory.h"
#include "executor/rank/leave.h"
#include "planner/base/files/exit_status.h"

namespace planwright::executor {
namespace {

// Gloo throws on a thread of its own when a peer breaks its protocol. No code of ours is on that stack, so the
// exception ends in std::terminate, and this is the only place that can still report it.
[[noreturn]] void OnTerminate() {
  if (const std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& exception) {
      LeaveBecauseOf(exception, "");
    } catch (...) {
      // Not a std::exception: it has no message. Falls through to the last line.
    }
  }
  Leave(kExitInternal, "the process was ended by std::terminate");
}

}  // namespace

void PrepareProcess() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(OnTerminate);
  ReportRefusedHostMemory();
  at::set_num_threads(1);  // sums must not depend on the number of cores, and ranks of one machine share them
}

}  // namespace planwright::executor
