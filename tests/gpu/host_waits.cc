// Counts how often the host waits for the device: a library that CUDA loads into a program by itself
// (CUDA_INJECTION64_PATH), with CUPTI's callbacks. Counted are calls of the program's first thread, the walker's, that
// return only when the device has done something. The count is always up to date in the file HOST_WAITS.N, N the rank,
// because a rank ends by _exit. With HOST_WAITS_TRACE set, stderr says which calls wait.
#include <cupti.h>
#include <execinfo.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

long waits = 0;
int file = -1;

void Write() {
  if (file < 0) return;
  const std::string text = std::to_string(waits) + "\n";
  if (pwrite(file, text.data(), text.size(), 0) < 0) std::perror("HOST_WAITS");
}

void Trace(const char* name) {
  if (std::getenv("HOST_WAITS_TRACE") == nullptr) return;
  std::fprintf(stderr, "%s\n", name);
  void* frames[40];
  backtrace_symbols_fd(frames, backtrace(frames, 40), 2);
}

bool IsWalker() { return syscall(SYS_gettid) == getpid(); }

// By the start of their names: each has two variants, for the two kinds of default stream.
bool Waits(std::string_view name) {
  for (std::string_view waiting : {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize",
                                   "cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize", "cuMemcpyDtoH_"}) {
    if (name.starts_with(waiting)) return true;
  }
  return name == "cudaMemcpy" || name.starts_with("cudaMemcpy_");
}

// A runtime function calls driver functions; the outermost call alone is counted.
thread_local int depth = 0;

void CUPTIAPI OnCall(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (!Waits(call.functionName) || !IsWalker()) return;
  if (call.callbackSite == CUPTI_API_EXIT) {
    --depth;
  } else if (depth++ == 0) {
    ++waits;
    Write();
    Trace(call.functionName);
  }
}

}  // namespace

extern "C" int InitializeInjection() {
  CUpti_SubscriberHandle subscriber;
  const bool good = cuptiSubscribe(&subscriber, OnCall, nullptr) == CUPTI_SUCCESS &&
                    cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API) == CUPTI_SUCCESS &&
                    cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API) == CUPTI_SUCCESS;
  if (!good) std::fprintf(stderr, "CUPTI does not count here\n");
  const char* path = std::getenv("HOST_WAITS");
  const char* rank = std::getenv("RANK");
  if (path != nullptr && rank != nullptr)
    file = open((std::string(path) + "." + rank).c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666);
  Write();
  return good;
}
