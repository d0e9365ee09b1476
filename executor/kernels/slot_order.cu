// Order by counting (executor/kernels/slot_order.h). The slots are cut in parts, one for each block. A first kernel
// counts the experts of each part. A second one adds up what comes before: other experts, earlier parts, earlier warps
// of the part, earlier lanes of the warp. So the order is stable, and no two threads race for a row.
#include "executor/kernels/row_math.cuh"
#include "executor/kernels/slot_order.h"

namespace planwright::executor::ops {
namespace {

constexpr int kSlotWarps = 8, kSlotThreads = kSlotWarps * kWarp;
constexpr int64_t kMostParts = 128;  // a block adds up the counts of all earlier parts, so there are few

// Slots of a part: a multiple of kSlotThreads, so that each of its warps has whole groups of 32.
__host__ __device__ int64_t SlotsOfPart(int64_t slots) {
  const int64_t even = (slots + kMostParts - 1) / kMostParts;
  return (even + kSlotThreads - 1) / kSlotThreads * kSlotThreads;
}

__global__ void __launch_bounds__(kSlotThreads)
    CountSlotsKernel(const int64_t* ids, int64_t slots, int experts, int* counts) {
  __shared__ int count[kMostOrderedExperts];
  const int thread = static_cast<int>(threadIdx.x);
  for (int e = thread; e < experts; e += kSlotThreads) count[e] = 0;
  __syncthreads();
  const int64_t part = SlotsOfPart(slots), first = blockIdx.x * part, end = min(first + part, slots);
  for (int64_t slot = first + thread; slot < end; slot += kSlotThreads) {
    const int64_t id = ids[slot];
    if (id < 0 || id >= experts) __trap();
    atomicAdd(count + id, 1);
  }
  __syncthreads();
  for (int e = thread; e < experts; e += kSlotThreads)
    counts[static_cast<int64_t>(blockIdx.x) * experts + e] = count[e];
}

__global__ void __launch_bounds__(kSlotThreads)
    PlaceSlotsKernel(const int64_t* ids, const float* weights, int64_t slots, int experts, const int* counts,
                     SlotOrder out) {
  __shared__ int first_row[kMostOrderedExperts];         // first row of an expert, over all parts
  __shared__ int next[kSlotWarps][kMostOrderedExperts];  // the next row of an expert, for each warp
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
  const int parts = static_cast<int>(gridDim.x), part = static_cast<int>(blockIdx.x);
  const int64_t of_part = SlotsOfPart(slots), of_warp = of_part / kSlotWarps;
  const int64_t begin = part * of_part + warp * of_warp;

  // What this block's warps have of each expert.
  for (int i = thread; i < kSlotWarps * experts; i += kSlotThreads) next[i / experts][i % experts] = 0;
  __syncthreads();
  for (int64_t slot = begin + lane; slot < min(begin + of_warp, slots); slot += kWarp)
    atomicAdd(&next[warp][ids[slot]], 1);

  // How many rows an expert has, and how many of them come from earlier parts. Each expert belongs to one thread here
  // and below: expert e to thread e % kSlotThreads.
  constexpr int kOwn = kMostOrderedExperts / kSlotThreads;
  int before[kOwn] = {};
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int e = thread + i * kSlotThreads;
    if (e >= experts) continue;
    int total = 0;
#pragma unroll 8
    for (int p = 0; p < parts; ++p) {
      const int count = counts[static_cast<int64_t>(p) * experts + e];
      total += count;
      if (p < part) before[i] += count;
    }
    first_row[e] = total;
  }
  __syncthreads();

  // From rows of an expert to rows of the experts below it.
  if (warp == 0) {
    int below = 0;
    for (int from = 0; from < experts; from += kWarp) {
      const int e = from + lane, own = e < experts ? first_row[e] : 0;
      int sum = own;  // over this lane and the lanes below
#pragma unroll
      for (int offset = 1; offset < kWarp; offset *= 2) {
        const int other = __shfl_up_sync(kAllLanes, sum, offset);
        if (lane >= offset) sum += other;
      }
      if (e < experts) first_row[e] = below + sum - own;
      below += __shfl_sync(kAllLanes, sum, kWarp - 1);
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int e = thread + i * kSlotThreads;
    if (e >= experts) continue;
    int row = first_row[e] + before[i];
    for (int w = 0; w < kSlotWarps; ++w) {
      const int count = next[w][e];
      next[w][e] = row;
      row += count;
    }
  }
  __syncthreads();

  // 32 slots at a time: lanes of one expert take the next rows in the order of lanes.
  for (int64_t from = begin; from < min(begin + of_warp, slots); from += kWarp) {
    const int64_t slot = from + lane;
    const bool real = slot < slots;
    const int id = real ? static_cast<int>(ids[slot]) : -1;
    const unsigned peers = __match_any_sync(kAllLanes, id);
    const int earlier = __popc(peers & ((1u << lane) - 1));
    const int row = real ? next[warp][id] + earlier : 0;
    __syncwarp();
    if (real && earlier == 0) next[warp][id] = row + __popc(peers);
    __syncwarp();
    if (!real) continue;
    out.order[row] = slot;
    out.row_of_slot[slot] = row;
    out.row_weights[row] = weights[slot];
  }
}

__global__ void __launch_bounds__(kSlotThreads) RowsOfSlotsKernel(const int64_t* order, const float* row_values,
                                                                  int64_t rows, int* row_of_slot, float* slot_values) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kSlotThreads + threadIdx.x;
  if (row >= rows) return;
  const int64_t slot = order[row];
  row_of_slot[slot] = static_cast<int>(row);
  if (row_values != nullptr) slot_values[slot] = row_values[row];
}

unsigned BlocksOf(int64_t count, int64_t each) { return static_cast<unsigned>((count + each - 1) / each); }

}  // namespace

int64_t PartsOfSlots(int64_t slots) { return BlocksOf(slots, SlotsOfPart(slots)); }

void LaunchOrderSlots(const int64_t* ids, const float* weights, int64_t slots, int64_t experts, int* counts,
                      SlotOrder out, cudaStream_t stream) {
  const unsigned parts = BlocksOf(slots, SlotsOfPart(slots));
  CountSlotsKernel<<<parts, kSlotThreads, 0, stream>>>(ids, slots, static_cast<int>(experts), counts);
  PlaceSlotsKernel<<<parts, kSlotThreads, 0, stream>>>(ids, weights, slots, static_cast<int>(experts), counts, out);
}

void LaunchRowsOfSlots(const int64_t* order, const float* row_values, int64_t rows, int* row_of_slot,
                       float* slot_values, cudaStream_t stream) {
  RowsOfSlotsKernel<<<BlocksOf(rows, kSlotThreads), kSlotThreads, 0, stream>>>(order, row_values, rows, row_of_slot,
                                                                               slot_values);
}

}  // namespace planwright::executor::ops
