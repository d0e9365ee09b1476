// Few bytes for the host, written by a kernel. A copy by the copy engine waits for all that other streams have queued
// there: gigabytes, while a checkpoint is copied.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor {

// Copies `bytes` of the device to `host`, an address by which the device reaches pinned host memory. Both at any
// address. The host may read them when the stream has done it. No bytes: nothing happens.
void LaunchWriteToHost(const void* from, void* host, int64_t bytes, cudaStream_t stream);

}  // namespace planwright::executor
