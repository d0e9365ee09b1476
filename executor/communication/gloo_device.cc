#include "executor/communication/gloo_device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <time.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

// A thread that is refused a lock and then waits for sockets sleeps a moment in between. Otherwise Gloo's thread burns
// its core: it waits for sockets that have data, tries the lock of the first one's peer, gives up if another thread of
// the rank holds it, because that one just writes to this peer, and waits again, which ends at once, as the data is
// still there. Where ranks share cores, the writer may have no core for milliseconds, and more than half of all
// processor time went there.
//
// The two functions take the place of those of the C library in the whole process. All threads that do not do both, one
// after the other, see no change.
namespace {

thread_local bool refused = false;

template <typename Function>
Function* InTheLibrary(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  static auto* const real = InTheLibrary<int(pthread_mutex_t*)>("pthread_mutex_trylock");
  const int result = real(mutex);
  if (result == EBUSY) refused = true;
  return result;
}

extern "C" int epoll_wait(int epoll, epoll_event* events, int most, int timeout) {
  static auto* const real = InTheLibrary<int(int, epoll_event*, int, int)>("epoll_wait");
  if (refused) {
    refused = false;
    constexpr timespec kOneWrite = {.tv_sec = 0, .tv_nsec = 20'000};  // as long as a small message takes
    nanosleep(&kOneWrite, nullptr);
  }
  return real(epoll, events, most, timeout);
}

namespace planwright::executor {

std::shared_ptr<gloo::transport::Device> GlooDeviceAt(const std::string& address) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<gloo::transport::Device>> devices;
  const std::lock_guard lock(mutex);
  std::shared_ptr<gloo::transport::Device> device = devices[address].lock();
  if (device == nullptr) devices[address] = device = c10d::ProcessGroupGloo::createDeviceForHostname(address);
  return device;
}

}  // namespace planwright::executor
