#include "executor/rank/process.h"

#include <ATen/Parallel.h>
#include <absl/strings/str_cat.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

#include "executor/log/log.h"
#include "executor/rank/exit.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/process/inherited.h"

namespace planwright::executor {
namespace {

// Gloo throws on a thread of its own when a peer breaks its protocol. No code of ours is on that stack, so the
// exception ends in std::terminate, and this is the only place that can still report it.
[[noreturn]] void OnTerminate() {
  if (const std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& exception) {
      ExitBecauseOf(exception, "");
    } catch (...) {
      // Not a std::exception: it has no message. Falls through to the last line.
    }
  }
  Exit(kExitInternal, "the process was ended by std::terminate");
}

// Host memory for tensors that is refused is reported as such: LibTorch throws its general error then, which has no
// type that tells it from a bug.
class RefusedMemory : public std::bad_alloc {
 public:
  explicit RefusedMemory(size_t bytes) : what_(absl::StrCat(bytes, " bytes for a tensor were refused")) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  const std::string what_;
};

// LibTorch's own allocator with another exception.
class HostAllocator : public c10::Allocator {
 public:
  explicit HostAllocator(c10::Allocator& inner) : inner_(inner) {}
  c10::DataPtr allocate(size_t bytes) override {
    try {
      return inner_.allocate(bytes);
    } catch (const c10::Error&) {
      throw RefusedMemory(bytes);
    }
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_.raw_deleter(); }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  c10::Allocator& inner_;
};

std::atomic<bool> asked = false;  // lock-free, so a signal handler may set it
static_assert(std::atomic<bool>::is_always_lock_free);

void ReportRefusedHostMemory() {
  // Never destroyed: tensors may outlive everything else.
  c10::SetCPUAllocator(new HostAllocator(*c10::GetDefaultCPUAllocator()), /*priority=*/1);
}

}  // namespace

void PrepareProcess() {
  AllowManyFiles();
  std::signal(SIGPIPE, SIG_IGN);
  // Only a launcher gives ranks a secret. It gets the signal, too, where a batch system ends all processes of a job.
  if (std::getenv("PLANWRIGHT_SECRET") != nullptr) std::signal(SIGTERM, SIG_IGN);
  std::set_terminate(OnTerminate);
  ReportRefusedHostMemory();
  at::set_num_threads(1);  // sums must not depend on the number of cores, and ranks of one machine share them
}

void EndIfAsked() {
  signal(SIGUSR1, SIG_DFL);
  sigset_t listened;
  sigemptyset(&listened);
  sigaddset(&listened, SIGUSR1);
  pthread_sigmask(SIG_UNBLOCK, &listened, nullptr);
}

void ListenForStop() {
  struct sigaction action {};
  action.sa_handler = [](int) { asked = true; };
  action.sa_flags = SA_RESTART;  // calls that wait go on
  sigaction(SIGUSR1, &action, nullptr);
}

bool AskedToStop() {
  static std::atomic<bool> logged = false;
  if (asked && !logged.exchange(true)) LogInfo("asked to save and stop (SIGUSR1)");
  return asked;
}

}  // namespace planwright::executor
