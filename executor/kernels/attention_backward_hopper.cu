// The backward of attention on Hopper's tensor cores (executor/kernels/attention.h). Compiled for sm_90a alone.
//
// Scores are computed again, as in FlashAttention (Dao and others, 2022). A thread block has 128 keys of a head and
// goes through all queries, 64 at a time. Two warpgroups have 64 keys each: they compute transposed scores, weights p
// and ds, and sum dv and dk in registers. They put ds into shared memory for a third warpgroup, which multiplies it
// with the keys and adds the product to dq in memory. A fourth loads. So no warpgroup waits for the other keys'
// exponentials: with two buffers for ds, one may be up to two steps ahead.
//
// The sums of dq are added in the order in which blocks come, four numbers at a time, each block beginning with other
// queries. That is most of what L2 has to do, and L2 and power are what limits the kernel: without these additions it
// takes a tenth less. Bulk copies that add, keys and values in registers, and clusters that share their loads win
// nothing. Scores a step ahead win a tenth with heads of 64, which leave registers for them.
//
// On an H100, two images of 6152 rows with 16 heads of 80 take 2.04 ms, 475 TFLOP/s, and 2.09 ms for seconds on end,
// when power is what limits it; cuDNN takes 2.8. 0.05 ms of that are before the products, 0.04 behind them.
#include "executor/kernels/attention.h"
#include "executor/kernels/attention_gradient_rows.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kKeyGroups = 2, kKeyRows = kKeyGroups * kGroupRows, kQueryStages = 4, kDsBuffers = 2;
constexpr int kBackwardThreads = (kKeyGroups + 2) * kWarpgroup;
// Together, with the first one twice, 512: what four warpgroups begin with.
constexpr int kKeyRegisters = 208, kDqRegisters = 72, kBringingRegisters = 24;
static_assert(kKeyGroups * kKeyRegisters + kDqRegisters + kBringingRegisters == 512, "all registers of a processor");

// Heads of 64 leave registers for the scores of the next queries, whose products run while this step's are used. Both
// warpgroups of keys then take their exponentials in turn, so that one has the tensor cores meanwhile. With heads of 80
// neither helps.
template <int columns>
inline constexpr bool kScoresAhead = columns == 64;
// Named barriers: those of a warpgroup of keys, and whose turn it is.
constexpr int kGroupBarrier = 1, kTurn = kGroupBarrier + kKeyGroups;

template <int columns>
inline constexpr int kTileBytes = kHeadBytes<columns, kGroupRows>;
// ds of 64 keys x 64 queries, a row a key, swizzled over the 128 bytes of a row.
constexpr int kDsRowBytes = kQueryBlock * 2, kDsBytes = kGroupRows * kDsRowBytes;
// Scores of a thread.
constexpr int kEachScore = kGroupRows * kQueryBlock / kWarpgroup;

template <int columns>
struct Shared {
  alignas(1024) unsigned char ds[kDsBuffers][kKeyGroups][kDsBytes];
  unsigned char k[kKeyGroups][kTileBytes<columns>];
  unsigned char v[kKeyGroups][kTileBytes<columns>];  // and dv at the end
  unsigned char dk[kKeyGroups][kTileBytes<columns>];
  unsigned char q[kQueryStages][kTileBytes<columns>];
  unsigned char da[kQueryStages][kTileBytes<columns>];
  float statistics[kQueryStages][kStatistics];
  // Barriers.
  uint64_t keys_full, full[kQueryStages], empty[kQueryStages], ds_full[kDsBuffers], ds_empty[kDsBuffers];

  // By one thread.
  __device__ void PrepareBarriers() {
    constexpr int kWarps = kWarpgroup / 32;
    Prepare(&keys_full, 1);
    for (int i = 0; i < kQueryStages; ++i) Prepare(&full[i], 1), Prepare(&empty[i], kKeyGroups * kWarps);
    for (int i = 0; i < kDsBuffers; ++i) Prepare(&ds_full[i], kKeyGroups * kWarps), Prepare(&ds_empty[i], kWarps);
  }
};

// Space for the shared memory to begin at a multiple of 1024.
template <int columns>
inline constexpr int kSharedBytes = static_cast<int>(sizeof(Shared<columns>)) + 1024;
static_assert(kSharedBytes<80> <= 227 * 1024, "a block of Hopper has no more");

struct Maps {
  CUtensorMap q, k, v, da, dk, dv;
};

// Sequences of one length.
struct Run {
  Maps maps;
  GradientShape shape;
  int first_piece = 0;      // of the launch
  int64_t first_block = 0;  // of queries, of all runs
};

template <int most>
struct Work {
  Run runs[most];
  int count = 0;

  // Of this block.
  __device__ const Run& RunOf(int block) const {
    int run = 0;
    if (most > 1)
      while (run + 1 < count && block >= runs[run + 1].first_piece) ++run;
    return runs[run];
  }
};

// The keys of this block, and in which order it takes the blocks of queries. All blocks of a run that have 128 keys
// come first, of all heads. Those that have fewer end sooner, and fill the last round.
struct Piece {
  __device__ explicit Piece(const Run& run) {
    const GradientShape& shape = run.shape;
    const int whole = shape.length / kKeyRows, all_whole = whole * shape.heads * shape.sequences;
    const int index = static_cast<int>(blockIdx.x) - run.first_piece;
    const int of = index < all_whole ? index / whole : index - all_whole;
    const int block = index < all_whole ? index % whole : whole;
    keys = {block * kKeyRows, of % shape.heads, of / shape.heads};
    rows = min(shape.length - keys.row, kKeyRows);
    head0 = run.first_block + static_cast<int64_t>(of) * shape.query_blocks;
    query_block = static_cast<int>(static_cast<int64_t>(block) * shape.query_blocks / (whole + 1));
    blocks = shape.query_blocks;
  }
  __device__ void Advance() {
    if (++query_block == blocks) query_block = 0;
  }
  __device__ TileAt Queries() const { return {query_block * kQueryBlock, keys.head, keys.sequence}; }
  __device__ int64_t Block() const { return head0 + query_block; }  // among those of all runs

  TileAt keys;
  int rows;       // of keys
  int64_t head0;  // the number of the first block of queries of the head
  int query_block, blocks;
};

struct QueryTurn {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void Advance() {
    if (++stage == kQueryStages) stage = 0, parity ^= 1;
  }
};

// How often a buffer of ds was used before, as the parity of that number.
__device__ uint32_t DsParity(int step) { return step / kDsBuffers & 1; }

// By one thread.
template <int columns>
__device__ void Bring(Shared<columns>& shared, const Maps& maps, const float* statistics, Piece piece) {
  ArriveExpecting(&shared.keys_full, 2 * kKeyGroups * kTileBytes<columns>);
  for (int group = 0; group < kKeyGroups; ++group) {
    TileAt keys = piece.keys;
    keys.row += group * kGroupRows;
    LoadTile<columns>(shared.k[group], maps.k, keys, &shared.keys_full);
    LoadTile<columns>(shared.v[group], maps.v, keys, &shared.keys_full);
  }
  QueryTurn turn;
  for (int step = 0; step < piece.blocks; ++step, piece.Advance(), turn.Advance()) {
    uint64_t* full = &shared.full[turn.stage];
    WaitFor(&shared.empty[turn.stage], turn.parity ^ 1);
    ArriveExpecting(full, 2 * kTileBytes<columns> + sizeof(shared.statistics[0]));
    LoadTile<columns>(shared.q[turn.stage], maps.q, piece.Queries(), full);
    BulkLoad(shared.statistics[turn.stage], statistics + piece.Block() * kStatistics, sizeof(shared.statistics[0]),
             full);
    LoadTile<columns>(shared.da[turn.stage], maps.da, piece.Queries(), full);
  }
}

__device__ void AddFour(float* to, const float* four) {
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(four[0]), "f"(four[1]), "f"(four[2]),
               "f"(four[3])
               : "memory");
}

// Describes 16 keys of ds to the tensor cores: the summed index goes along these rows.
__device__ uint64_t DescribedDs(uint32_t rows) {
  return uint64_t{1} << 62 | uint64_t{8 * kDsRowBytes >> 4} << 32 | uint64_t{1} << 16 | rows >> 4;
}

// dq = ds times the keys of so many groups.
template <int columns, int groups>
__device__ void MultiplyWithKeys(float (&dq)[kEachOfHead<columns>], uint32_t ds, uint32_t k) {
  constexpr int kOfGroup = kGroupRows / kProductDepth;
  BeginProducts();
#pragma unroll
  for (int i = 0; i < groups * kOfGroup; ++i) {
    const uint64_t weights = DescribedDs(ds + i * kProductDepth * kDsRowBytes);
    const uint64_t keys =
        RowsSummed<kGroupRows>(k + i / kOfGroup * kTileBytes<columns> + i % kOfGroup * kSliceBytes<kProductDepth>);
    if (i == 0)
      FirstWeighted(dq, weights, keys);
    else
      AddWeighted(dq, weights, keys);
  }
  CommitProducts();
  WaitForProducts<0>();
}

// dq += ds times the keys, of each block of queries.
template <int columns>
__device__ void AddQueryGradients(Shared<columns>& shared, float* sums, Piece piece) {
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
  const uint32_t k = SharedAddress(shared.k);
  float dq[kEachOfHead<columns>];
  WaitFor(&shared.keys_full, 0);
  for (int step = 0; step < piece.blocks; ++step, piece.Advance()) {
    const int buffer = step % kDsBuffers;
    const uint32_t ds = SharedAddress(shared.ds[buffer]);
    WaitFor(&shared.ds_full[buffer], DsParity(step));
    if (piece.rows > kGroupRows)
      MultiplyWithKeys<columns, kKeyGroups>(dq, ds, k);
    else
      MultiplyWithKeys<columns, 1>(dq, ds, k);
    Hold(dq);
    if (thread % 32 == 0) Arrive(&shared.ds_empty[buffer]);
    float* to = sums + piece.Block() * kBlockSums<columns> + thread * 4;
#pragma unroll
    for (int i = 0; i < kEachOfHead<columns> / 4; ++i) AddFour(to + i * 4 * kWarpgroup, dq + 4 * i);
  }
}

// A warpgroup that has no keys: it only lets the others go on.
template <int columns>
__device__ void LetPass(Shared<columns>& shared, int steps) {
  const bool first = threadIdx.x % 32 == 0;
  QueryTurn turn;
  for (int step = 0; step < steps; ++step, turn.Advance()) {
    const int buffer = step % kDsBuffers;
    WaitFor(&shared.full[turn.stage], turn.parity);
    if (first) Arrive(&shared.empty[turn.stage]);
    WaitFor(&shared.ds_empty[buffer], DsParity(step) ^ 1);
    if (first) Arrive(&shared.ds_full[buffer]);
  }
}

// Keys behind the end of the sequence have no weight. `row` is the first of the thread's two, r and r + 8.
__device__ void Mask(float (&p)[kEachScore], int row, int length) {
#pragma unroll
  for (int i = 0; i < kEachScore; ++i)
    if (row + i / 2 % 2 * 8 >= length) p[i] = 0;
}

__device__ void PackAll(uint32_t (&packed)[kEachScore / 2], const float (&x)[kEachScore]) {
#pragma unroll
  for (int i = 0; i < kEachScore / 2; ++i) packed[i] = Pack(x[2 * i], x[2 * i + 1]);
}

// dk and dv of 64 keys: those of warpgroup `group` of the two.
template <int columns>
__device__ void SumKeyGradients(Shared<columns>& shared, const Maps& maps, int group, const Piece& piece,
                                const GradientShape& shape) {
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup, lane = thread % 32, warp = thread / 32;
  TileAt keys = piece.keys;
  keys.row += group * kGroupRows;
  const bool whole = keys.row + kGroupRows <= shape.length;
  const int row = keys.row + warp * 16 + lane / 4;
  const uint32_t k = SharedAddress(shared.k[group]), v = SharedAddress(shared.v[group]);
  // Where this lane writes the rows of ds of its warp.
  const uint32_t ds_row = SharedAddress(shared.ds[0][group]) + (warp * 16 + lane % 16) * kDsRowBytes;

  float s[kEachScore], dp[kEachScore], dv[kEachOfHead<columns>], dk[kEachOfHead<columns>];
  uint32_t p_packed[kEachScore / 2], ds_packed[kEachScore / 2];
#pragma unroll
  for (int i = 0; i < kEachOfHead<columns>; ++i) dv[i] = dk[i] = 0;
  constexpr bool ahead = kScoresAhead<columns>;
  WaitFor(&shared.keys_full, 0);
  QueryTurn turn, next;
  const auto start_scores = [&](const QueryTurn& of) {
    BeginProducts();
    StartScores<columns>(s, k, SharedAddress(shared.q[of.stage]));
    CommitProducts();
  };
  int unreleased = -1;
  const auto release = [&] {
    if (unreleased >= 0 && lane == 0) Arrive(&shared.empty[unreleased]);
    unreleased = turn.stage;
  };
  const bool in_turn = ahead && piece.rows > kGroupRows;  // the other warpgroup has keys, too
  if (in_turn && group == 1) ArriveAtNamed(kTurn, kKeyGroups * kWarpgroup);
  if constexpr (ahead) {
    WaitFor(&shared.full[0], 0);
    Hold(dv);
    Hold(dk);
    start_scores(next);
    WaitForProducts<0>();
    Hold(s);
  }
  for (int step = 0; step < piece.blocks; ++step, turn.Advance()) {
    const uint32_t q = SharedAddress(shared.q[turn.stage]), da = SharedAddress(shared.da[turn.stage]);
    if constexpr (!ahead) {
      WaitFor(&shared.full[turn.stage], turn.parity);
      start_scores(turn);
      WaitForProducts<0>();  // those of the step before too
      Hold(s);
      release();
    }
    BeginProducts();
    StartScores<columns>(dp, v, da);
    CommitProducts();

    const auto* exponents = reinterpret_cast<const float4*>(shared.statistics[turn.stage]) + lane % 4;
    const auto* products = exponents + kQueryBlock / 4;
    float p[kEachScore];
    if (in_turn) WaitAtNamed(kTurn + group, kKeyGroups * kWarpgroup);
#pragma unroll
    for (int i = 0; i < kEachScore / 8; ++i) {
      const float4 less = exponents[4 * i];
#pragma unroll
      for (int e = 0; e < 8; ++e)
        p[8 * i + e] = Exp2(fmaf(s[8 * i + e], shape.scale2,
                                 -(e < 4 ? (e % 2 == 0 ? less.x : less.y) : (e % 2 == 0 ? less.z : less.w))));
    }
    if (!whole) Mask(p, row, shape.length);
    PackAll(p_packed, p);
    if (in_turn) ArriveAtNamed(kTurn + 1 - group, kKeyGroups * kWarpgroup);
    if constexpr (ahead) {
      // Behind the last queries, scores of the same ones: nobody takes them, but products in a branch run one by one.
      next = turn;
      if (step + 1 < piece.blocks) {
        next.Advance();
        WaitFor(&shared.full[next.stage], next.parity);
      }
      start_scores(next);
    }
    Hold(dv);
    BeginProducts();
    StartWeighted<kQueryBlock>(dv, p_packed, da);
    CommitProducts();
    WaitForProducts<ahead ? 2 : 1>();
    Hold(dp);
    if constexpr (ahead) release();  // dk of the step before is done
#pragma unroll
    for (int i = 0; i < kEachScore / 8; ++i) {
      const float4 less = products[4 * i];
#pragma unroll
      for (int e = 0; e < 8; ++e)
        p[8 * i + e] *= dp[8 * i + e] - (e < 4 ? (e % 2 == 0 ? less.x : less.y) : (e % 2 == 0 ? less.z : less.w));
    }
    PackAll(ds_packed, p);

    const int buffer = step % kDsBuffers;
    WaitFor(&shared.ds_empty[buffer], DsParity(step) ^ 1);
#pragma unroll
    for (int i = 0; i < kQueryBlock / 16; ++i) {
      const uint32_t* four = ds_packed + 4 * i;
      StoreMatrices(ds_row + buffer * kKeyGroups * kDsBytes + (((2 * i + lane / 16) ^ (lane % 8)) << 4),
                    {four[0], four[1], four[2], four[3]});
    }
    ShowToBulk();  // and to the tensor cores
    __syncwarp();
    if (lane == 0) Arrive(&shared.ds_full[buffer]);
    Hold(dk);
    BeginProducts();
    StartWeighted<kQueryBlock>(dk, ds_packed, q);
    CommitProducts();
    if constexpr (ahead) {
      WaitForProducts<1>();  // the next scores, and dv
      Hold(s);
      Hold(dv);
    }
  }
  WaitForProducts<0>();
  Hold(dv);
  Hold(dk);
  WaitAtNamed(kGroupBarrier + group, kWarpgroup);  // all of the warpgroup have read v
  RoundToTile(dv, 1, 1, shared.v[group]);
  RoundToTile(dk, shape.scale, shape.scale, shared.dk[group]);
  ShowToBulk();
  WaitAtNamed(kGroupBarrier + group, kWarpgroup);
  if (thread != 0) return;
  StoreTile<columns>(maps.dv, shared.v[group], keys);
  StoreTile<columns>(maps.dk, shared.dk[group], keys);
  CommitBulk();
  WaitForBulk();
}

template <int columns, int most>
__global__ void __launch_bounds__(kBackwardThreads, 1)
    AttentionGradKernel(const float* statistics, float* sums, const __grid_constant__ Work<most> work) {
  extern __shared__ unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared<columns>*>(memory + (1024 - SharedAddress(memory) % 1024) % 1024);
  if (threadIdx.x == 0) {
    shared.PrepareBarriers();
    ShowPrepared();
  }
  __syncthreads();
  const Run& run = work.RunOf(static_cast<int>(blockIdx.x));
  const Piece piece(run);
  const int warpgroup = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kWarpgroup, 0);
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kBringingRegisters));
    if (threadIdx.x == 0) Bring(shared, run.maps, statistics, piece);
  } else if (warpgroup == 1) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kDqRegisters));
    AddQueryGradients(shared, sums, piece);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kKeyRegisters));
    if ((warpgroup - 2) * kGroupRows < piece.rows)
      SumKeyGradients(shared, run.maps, warpgroup - 2, piece, run.shape);
    else
      LetPass(shared, piece.blocks);
  }
}

// Blocks of queries of all heads and sequences of the runs before `run`.
int64_t FirstQueryBlock(const Attention& x, int run) {
  int64_t blocks = 0;
  for (int i = 0; i < run; ++i) blocks += x.runs[i].sequences * x.heads * Blocks(x.runs[i].length, kQueryBlock);
  return blocks;
}

int64_t QueryBlocks(const Attention& x) { return FirstQueryBlock(x, static_cast<int>(x.runs.size())); }

GradientShape ShapeOf(const Attention& x, const EqualSequences& run) {
  GradientShape shape;
  shape.length = static_cast<int>(run.length), shape.heads = static_cast<int>(x.heads);
  shape.sequences = static_cast<int>(run.sequences), shape.rows = x.rows();
  shape.query_blocks = Blocks(run.length, kQueryBlock);
  shape.scale = static_cast<float>(x.scale), shape.scale2 = static_cast<float>(x.scale * kLog2E);
  return shape;
}

template <int columns, int most>
cudaError_t LaunchRuns(const Attention& x, const AttentionGradients& d, int first, int end, cudaStream_t stream) {
  const int64_t width = x.heads * columns;
  float *sums = d.workspace, *statistics = sums + QueryBlocks(x) * kBlockSums<columns>;
  Work<most> work;
  work.count = end - first;
  const std::vector<int> order = LongestFirst(x, first, end);
  int64_t row = 0;
  int pieces = 0;
  cudaError_t error = cudaSuccess;
  const auto map = [&](CUtensorMap* to, const __nv_bfloat16* matrix, const EqualSequences& sequences, int64_t stride) {
    if (error == cudaSuccess)
      error = MapTiles<columns>(to, matrix + row * stride, sequences, x.heads, stride, kGroupRows);
  };
  Run* next = work.runs;
  for (const int i : order) {
    const EqualSequences& sequences = x.runs[i];
    Run& run = *next++;
    row = FirstRow(x, i);
    map(&run.maps.q, x.q, sequences, x.stride), map(&run.maps.k, x.k, sequences, x.stride);
    map(&run.maps.v, x.v, sequences, x.stride), map(&run.maps.da, d.da, sequences, width);
    map(&run.maps.dk, d.dk, sequences, d.stride), map(&run.maps.dv, d.dv, sequences, d.stride);
    run.shape = ShapeOf(x, sequences), run.first_piece = pieces;
    run.first_block = FirstQueryBlock(x, i);
    pieces += Blocks(sequences.length, kKeyRows) * run.shape.heads * run.shape.sequences;
  }
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(AttentionGradKernel<columns, most>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 kSharedBytes<columns>);
  if (error != cudaSuccess) return error;

  const auto of_each = [&](const auto& launch) {
    const Run* run = work.runs;
    for (const int i : order) launch(*run++, FirstRow(x, i));
  };
  of_each([&](const Run& run, int64_t first_row) {
    const dim3 pairs(Blocks(int64_t{run.shape.query_blocks} * kQueryBlock * run.shape.heads, kPairs),
                     static_cast<unsigned>(run.shape.sequences));
    PrepareGradientKernel<columns><<<pairs, kPairThreads<columns>, 0, stream>>>(
        d.a + first_row * width, d.da + first_row * width, d.lse + first_row,
        statistics + run.first_block * kStatistics, sums + run.first_block * kBlockSums<columns>, run.shape);
  });
  AttentionGradKernel<columns, most>
      <<<static_cast<unsigned>(pieces), kBackwardThreads, kSharedBytes<columns>, stream>>>(statistics, sums, work);
  of_each([&](const Run& run, int64_t first_row) {
    const dim3 blocks(static_cast<unsigned>(run.shape.query_blocks), static_cast<unsigned>(run.shape.heads),
                      static_cast<unsigned>(run.shape.sequences));
    RoundQueryGradientKernel<columns><<<blocks, kWarpgroup, 0, stream>>>(
        sums + run.first_block * kBlockSums<columns>, d.dq + first_row * d.stride, d.stride, run.shape);
  });
  return cudaSuccess;
}

}  // namespace

int64_t AttentionWorkspace(const Attention& x) { return QueryBlocks(x) * (kQueryBlock * x.head_dim + kStatistics); }

cudaError_t LaunchAttentionGrad(const Attention& x, const AttentionGradients& d, cudaStream_t stream) {
  return ForRunsAtOnce(x, [&](auto columns, auto most, int first, int end) {
    return LaunchRuns<columns.value, most.value>(x, d, first, end, stream);
  });
}

}  // namespace planwright::executor::ops
