#include "executor/kernels/write_to_host.h"

namespace planwright::executor {
namespace {

constexpr int kThreads = 256;

// One block: there are few bytes, and they cross the bus one after the other anyway.
template <typename Word>
__global__ void __launch_bounds__(kThreads) WriteKernel(const Word* from, Word* host, int64_t words) {
  for (int64_t i = threadIdx.x; i < words; i += kThreads) host[i] = from[i];
}

bool InWords(const void* address) { return reinterpret_cast<uintptr_t>(address) % sizeof(uint64_t) == 0; }

}  // namespace

void LaunchWriteToHost(const void* from, void* host, int64_t bytes, cudaStream_t stream) {
  if (bytes <= 0) return;
  if (InWords(from) && InWords(host) && bytes % static_cast<int64_t>(sizeof(uint64_t)) == 0) {
    WriteKernel<<<1, kThreads, 0, stream>>>(static_cast<const uint64_t*>(from), static_cast<uint64_t*>(host),
                                            bytes / static_cast<int64_t>(sizeof(uint64_t)));
  } else {
    WriteKernel<<<1, kThreads, 0, stream>>>(static_cast<const uint8_t*>(from), static_cast<uint8_t*>(host), bytes);
  }
}

}  // namespace planwright::executor
