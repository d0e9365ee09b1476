// Attention forward on Hopper's tensor cores (executor/kernels/attention.h). Compiled for sm_90a alone.
//
// The algorithm is that of FlashAttention-3 (Shah and others, 2024): keys come in blocks, each row keeps the largest
// score so far, and sums are scaled down when it grows.
//
// A thread block has a warpgroup that loads and three that each have 64 queries. These take turns with their products:
// while one multiplies, the others take exponentials. Within a warpgroup, the scores of a block are computed before the
// sums over the values of the block before, so that tensor cores also work while this warpgroup takes exponentials.
// Blocks of 112 keys are what its registers hold. 6152 keys are 55 of them, with 8 missing.
//
// Blocks of keys go from the last one to the first, so that only the one that is not whole is masked.
//
// On an H100, two images of 6152 rows with 16 heads take 0.65 ms, 599 TFLOP/s, and 0.73 ms for seconds on end, when
// power is what limits it; cuDNN takes 1.02 to 1.05. A third stage, clusters that share their loads, keys in wider
// slices, which load faster, and some exponentials as polynomials win nothing.
#include <algorithm>
#include <limits>

#include "executor/kernels/attention.h"
#include "executor/kernels/attention_tiles.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kGroups = 3, kQueryRows = kGroups * kGroupRows, kKeyRows = 112, kKeyStages = 2;
constexpr int kForwardThreads = (kGroups + 1) * kWarpgroup;
// Three times the one and once the other make 512, what four warpgroups begin with.
constexpr int kAttendingRegisters = 160, kBringingRegisters = 32;
// Scores of a thread.
constexpr int kEachScore = kGroupRows * kKeyRows / kWarpgroup;

template <int columns>
struct Shared {
  alignas(1024) unsigned char q[kGroups][kHeadBytes<columns, kGroupRows>];
  alignas(1024) unsigned char a[kGroups][kHeadBytes<columns, kGroupRows>];
  alignas(1024) unsigned char k[kKeyStages][kHeadBytes<columns, kKeyRows>];
  alignas(1024) unsigned char v[kKeyStages][kHeadBytes<columns, kKeyRows>];
  // Barriers.
  uint64_t q_full[kGroups], q_empty[kGroups];
  uint64_t k_full[kKeyStages], k_empty[kKeyStages], v_full[kKeyStages], v_empty[kKeyStages];

  // By one thread.
  __device__ void PrepareBarriers() {
    constexpr int kWarps = kWarpgroup / 32;
    for (int i = 0; i < kGroups; ++i) Prepare(&q_full[i], 1), Prepare(&q_empty[i], kWarps);
    for (int i = 0; i < kKeyStages; ++i) {
      Prepare(&k_full[i], 1), Prepare(&v_full[i], 1);
      Prepare(&k_empty[i], kGroups * kWarps), Prepare(&v_empty[i], kGroups * kWarps);
    }
  }
};

// Space for the shared memory to begin at a multiple of 1024.
template <int columns>
inline constexpr int kSharedBytes = static_cast<int>(sizeof(Shared<columns>)) + 1024;
static_assert(kSharedBytes<80> <= 227 * 1024, "a block of Hopper has no more");

// Sequences of one length.
struct Run {
  CUtensorMap q, k, v, a;
  int length = 0;
  int query_tiles = 0, key_blocks = 0;  // of a sequence
  int first_piece = 0;                  // of the launch
  int64_t first_row = 0;                // of all sequences
};

template <int most>
struct Work {
  Run runs[most];
  int count = 0, pieces = 0, heads = 0;
  int64_t rows = 0;             // of all sequences, those of other launches too
  float scale = 1, scale2 = 1;  // of scores; the same times log2(e)

  // Of a piece of the work.
  __device__ const Run& RunOf(int index) const {
    int run = 0;
    if (most > 1)
      while (run + 1 < count && index >= runs[run + 1].first_piece) ++run;
    return runs[run];
  }
};

struct KeyTurn {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void Advance() {
    if (++stage == kKeyStages) stage = 0, parity ^= 1;
  }
};

// Piece `index` of a run: 192 queries of a head. Those of a sequence and head follow each other, so that blocks that
// run at a time read the same keys.
__device__ TileAt Piece(const Run& run, int heads, int index) {
  const int of = index / run.query_tiles;
  return {index % run.query_tiles * kQueryRows, of % heads, of / heads};
}

// One thread brings queries, keys and values of all pieces of this block.
template <int columns, int most>
__device__ void Bring(Shared<columns>& shared, const Work<most>& work) {
  KeyTurn turn;
  uint32_t q_parity = 0;
  for (int index = static_cast<int>(blockIdx.x); index < work.pieces; index += static_cast<int>(gridDim.x)) {
    const Run& run = work.RunOf(index);
    TileAt at = Piece(run, work.heads, index - run.first_piece);
    for (int group = 0; group < kGroups; ++group, at.row += kGroupRows) {
      WaitFor(&shared.q_empty[group], q_parity ^ 1);
      ArriveExpecting(&shared.q_full[group], kHeadBytes<columns, kGroupRows>);
      LoadTile<columns>(shared.q[group], run.q, at, &shared.q_full[group]);
    }
    q_parity ^= 1;
    for (int block = run.key_blocks - 1; block >= 0; --block, turn.Advance()) {
      at.row = block * kKeyRows;
      WaitFor(&shared.k_empty[turn.stage], turn.parity ^ 1);
      ArriveExpecting(&shared.k_full[turn.stage], kHeadBytes<columns, kKeyRows>);
      LoadTile<columns>(shared.k[turn.stage], run.k, at, &shared.k_full[turn.stage]);
      WaitFor(&shared.v_empty[turn.stage], turn.parity ^ 1);
      ArriveExpecting(&shared.v_full[turn.stage], kHeadBytes<columns, kKeyRows>);
      LoadTile<columns>(shared.v[turn.stage], run.v, at, &shared.v_full[turn.stage]);
    }
  }
}

// What a thread knows of its two rows, r and r + 8 of its warp's 16, r = lane / 4.
struct Rows {
  float top[2], sum[2];  // the largest score; the sum of exponentials that this thread has taken
  float shrink[2];       // what the last block made of the sums before it

  // Turns scores into exponentials, less the largest score.
  template <bool first>
  __device__ void TakeExponentials(float (&s)[kEachScore], float scale2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      // Four at a time, for a short chain of maxima.
      float most[4] = {s[2 * r], s[2 * r + 1], s[2 * r + 4], s[2 * r + 5]};
#pragma unroll
      for (int i = 2; i < kKeyRows / 8; ++i) {
        float* two = most + i % 2 * 2;
        two[0] = fmaxf(two[0], s[4 * i + 2 * r]), two[1] = fmaxf(two[1], s[4 * i + 2 * r + 1]);
      }
      float now = fmaxf(fmaxf(most[0], most[1]), fmaxf(most[2], most[3]));
      now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
      now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
      if (!first) now = fmaxf(now, top[r]);
      // Rounded products: one that is fused with the difference would not make 2^0 of a maximum that stays.
      const float less = __fmul_rn(now, scale2);
      if (!first) shrink[r] = Exp2(__fmul_rn(top[r], scale2) - less), sum[r] *= shrink[r];
      top[r] = now;
      float sums[2] = {0, 0};
#pragma unroll
      for (int i = 0; i < kKeyRows / 8; ++i) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[4 * i + 2 * r + e];
          x = Exp2(fmaf(x, scale2, -less));
          sums[e] += x;
        }
      }
      sum[r] = first ? sums[0] + sums[1] : sum[r] + sums[0] + sums[1];
    }
  }
};

// Scores with keys behind the end count for nothing. `keys` of the block are there, at least one.
__device__ void Mask(float (&s)[kEachScore], int keys) {
  if (keys >= kKeyRows) return;
#pragma unroll
  for (int i = 0; i < kKeyRows / 8; ++i) {
    const int column = 8 * i + static_cast<int>(threadIdx.x) % 4 * 2;
    if (column >= keys) s[4 * i] = s[4 * i + 2] = -INFINITY;
    if (column + 1 >= keys) s[4 * i + 1] = s[4 * i + 3] = -INFINITY;
  }
}

__device__ void PackAll(uint32_t (&p)[kEachScore / 2], const float (&s)[kEachScore]) {
#pragma unroll
  for (int i = 0; i < kEachScore / 2; ++i) p[i] = Pack(s[2 * i], s[2 * i + 1]);
}

// Turns of the warpgroups with their products: named barriers from 1 on. Those from 4 on are within a warpgroup.
__device__ void WaitForTurn(int group) { WaitAtNamed(1 + group, 2 * kWarpgroup); }
__device__ void EndTurn(int group) { ArriveAtNamed(1 + (group + 1) % kGroups, 2 * kWarpgroup); }
__device__ void WaitWithin(int group) { WaitAtNamed(1 + kGroups + group, kWarpgroup); }

// Warpgroup `group` of the three has every third 64 queries.
template <int columns, int most>
__device__ void Attend(Shared<columns>& shared, float* lse, int group, const Work<most>& work) {
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup, lane = thread % 32;
  const uint32_t q = SharedAddress(shared.q[group]);
  const auto release = [&](uint64_t* empty) {
    if (lane == 0) Arrive(empty);
  };
  KeyTurn turn;
  uint32_t q_parity = 0;
  float s[kEachScore], o[kEachOfHead<columns>];
  uint32_t p[kEachScore / 2];
  if (group == kGroups - 1) EndTurn(group);  // the first one begins
  for (int index = static_cast<int>(blockIdx.x); index < work.pieces; index += static_cast<int>(gridDim.x)) {
    const Run& run = work.RunOf(index);
    TileAt at = Piece(run, work.heads, index - run.first_piece);
    at.row += group * kGroupRows;
    WaitFor(&shared.q_full[group], q_parity);
    WaitFor(&shared.k_full[turn.stage], turn.parity);
    WaitForTurn(group);
    BeginProducts();
    StartScores<columns>(s, q, SharedAddress(shared.k[turn.stage]));
    CommitProducts();
    EndTurn(group);
    WaitForProducts<0>();
    Hold(s);
    release(&shared.k_empty[turn.stage]);
    Mask(s, run.length - (run.key_blocks - 1) * kKeyRows);
    Rows rows;
    rows.TakeExponentials<true>(s, work.scale2);
    PackAll(p, s);
#pragma unroll
    for (float& x : o) x = 0;

    for (int block = run.key_blocks - 2; block >= 0; --block) {
      const KeyTurn before = turn;
      turn.Advance();
      WaitFor(&shared.k_full[turn.stage], turn.parity);
      WaitForTurn(group);
      BeginProducts();
      StartScores<columns>(s, q, SharedAddress(shared.k[turn.stage]));
      CommitProducts();
      WaitFor(&shared.v_full[before.stage], before.parity);
      Hold(o);
      BeginProducts();
      StartWeighted<kKeyRows>(o, p, SharedAddress(shared.v[before.stage]));
      CommitProducts();
      EndTurn(group);
      WaitForProducts<1>();
      Hold(s);
      release(&shared.k_empty[turn.stage]);
      rows.TakeExponentials<false>(s, work.scale2);
      WaitForProducts<0>();
      Hold(o);
      release(&shared.v_empty[before.stage]);
#pragma unroll
      for (int i = 0; i < kEachOfHead<columns>; ++i) o[i] *= rows.shrink[i / 2 % 2];
      PackAll(p, s);
    }
    release(&shared.q_empty[group]);
    q_parity ^= 1;

    WaitFor(&shared.v_full[turn.stage], turn.parity);
    Hold(o);
    BeginProducts();
    StartWeighted<kKeyRows>(o, p, SharedAddress(shared.v[turn.stage]));
    CommitProducts();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      rows.sum[r] += __shfl_xor_sync(~0u, rows.sum[r], 1);
      rows.sum[r] += __shfl_xor_sync(~0u, rows.sum[r], 2);
      const int row = at.row + thread / 32 * 16 + lane / 4 + 8 * r;
      if (lane % 4 == 0 && row < run.length)
        lse[at.head * work.rows + run.first_row + static_cast<int64_t>(at.sequence) * run.length + row] =
            rows.top[r] * work.scale + logf(rows.sum[r]);
    }
    if (thread == 0) WaitForBulkReads();  // of the piece before
    WaitWithin(group);
    WaitForProducts<0>();
    Hold(o);
    release(&shared.v_empty[turn.stage]);
    turn.Advance();
    RoundToTile(o, 1 / rows.sum[0], 1 / rows.sum[1], shared.a[group]);
    ShowToBulk();
    WaitWithin(group);
    if (thread == 0) {
      StoreTile<columns>(run.a, shared.a[group], at);
      CommitBulk();
    }
  }
  if (group == 0) WaitForTurn(group);  // the last one's end of its turn
  if (thread == 0) WaitForBulk();
}

template <int columns, int most>
__global__ void __launch_bounds__(kForwardThreads, 1)
    AttentionKernel(float* lse, const __grid_constant__ Work<most> work) {
  extern __shared__ unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared<columns>*>(memory + (1024 - SharedAddress(memory) % 1024) % 1024);
  if (threadIdx.x == 0) {
    shared.PrepareBarriers();
    ShowPrepared();
  }
  __syncthreads();
  const int warpgroup = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kWarpgroup, 0);
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kBringingRegisters));
    if (threadIdx.x == 0) Bring(shared, work);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kAttendingRegisters));
    Attend(shared, lse, warpgroup - 1, work);
  }
}

template <int columns, int most>
cudaError_t LaunchRuns(const Attention& x, __nv_bfloat16* a, float* lse, int first, int end, cudaStream_t stream) {
  const int64_t width = x.heads * columns;
  Work<most> work;
  work.count = end - first, work.heads = static_cast<int>(x.heads), work.rows = x.rows();
  work.scale = static_cast<float>(x.scale), work.scale2 = static_cast<float>(x.scale * kLog2E);
  int64_t row = 0;
  cudaError_t error = cudaSuccess;
  const auto map = [&](CUtensorMap* to, const __nv_bfloat16* matrix, const EqualSequences& sequences, int64_t stride,
                       int rows) {
    if (error == cudaSuccess) error = MapTiles<columns>(to, matrix + row * stride, sequences, x.heads, stride, rows);
  };
  Run* next = work.runs;
  for (const int i : LongestFirst(x, first, end)) {
    const EqualSequences& sequences = x.runs[i];
    Run& run = *next++;
    row = FirstRow(x, i);
    map(&run.q, x.q, sequences, x.stride, kGroupRows), map(&run.k, x.k, sequences, x.stride, kKeyRows);
    map(&run.v, x.v, sequences, x.stride, kKeyRows), map(&run.a, a, sequences, width, kGroupRows);
    run.length = static_cast<int>(sequences.length);
    run.query_tiles = Blocks(sequences.length, kQueryRows), run.key_blocks = Blocks(sequences.length, kKeyRows);
    run.first_piece = work.pieces, run.first_row = row;
    work.pieces += static_cast<int>(sequences.sequences * x.heads) * run.query_tiles;
  }
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(AttentionKernel<columns, most>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 kSharedBytes<columns>);
  if (error != cudaSuccess) return error;
  const int blocks = std::min(std::max(DeviceAttribute(cudaDevAttrMultiProcessorCount), 1), work.pieces);
  AttentionKernel<columns, most><<<blocks, kForwardThreads, kSharedBytes<columns>, stream>>>(lse, work);
  return cudaSuccess;
}

}  // namespace

int64_t Attention::rows() const { return FirstRow(*this, static_cast<int>(runs.size())); }

bool HopperTakes(const Attention& x) {
  constexpr int64_t kLimit = std::numeric_limits<int>::max(), kGridLimit = 65535;
  const auto on_16_bytes = [](const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; };
  if ((x.head_dim != 64 && x.head_dim != 80) || x.heads <= 0 || x.heads > kGridLimit || x.runs.empty()) return false;
  int64_t left = kLimit / (x.heads * x.head_dim);  // of rows
  for (const EqualSequences& run : x.runs) {
    if (run.sequences <= 0 || run.sequences > kGridLimit || run.length <= 0 || run.length > left / run.sequences)
      return false;
    left -= run.rows();
  }
  return x.stride % 8 == 0 && on_16_bytes(x.q) && on_16_bytes(x.k) && on_16_bytes(x.v) && DeviceIsHopper();
}

cudaError_t LaunchAttention(const Attention& x, __nv_bfloat16* a, float* lse, cudaStream_t stream) {
  return ForRunsAtOnce(x, [&](auto columns, auto most, int first, int end) {
    return LaunchRuns<columns.value, most.value>(x, a, lse, first, end, stream);
  });
}

}  // namespace planwright::executor::ops
