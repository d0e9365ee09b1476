// The convolution of a Mamba layer and its backward (mamba_conv.h). A thread has four channels and walks through a
// strip of positions, so each element is read once; only the first and the last three positions of a strip are read by
// two warps. What is read next is requested four or more positions ahead. A warp has 128 channels.
#include "executor/kernels/mamba_conv.h"
#include "executor/kernels/row_math.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kWindow = 4;           // positions of the convolution, and of the rings of values below
constexpr int kReach = kWindow - 1;  // positions before its own that an output reads
constexpr int kChannels = 4;         // of a thread
constexpr int kWarps = 4;            // of a thread block: consecutive strips of the same channels
constexpr int kBlockChannels = kWarp * kChannels;
constexpr int kForwardStrip = 32, kBackwardStrip = 64;  // positions

// Four channels at one position after the other.
template <typename Group>
struct Cursor {
  Group* at;
  int64_t stride;
  __device__ __forceinline__ Cursor From(int position) const { return {at + position * stride, stride}; }
  __device__ __forceinline__ void Advance() { at += stride; }
};
using ReadCursor = Cursor<const uint2>;
using WriteCursor = Cursor<uint2>;

// This thread's channels, and where they are at position 0 of its sample.
struct ThreadWork {
  int channel;  // the first one
  bool exists;
  ReadCursor x;
  int64_t of_out, out_stride;

  __device__ __forceinline__ ThreadWork(const __nv_bfloat16* x_data, const ConvolutionShape& shape) {
    const int64_t sample = blockIdx.z;
    channel = static_cast<int>(blockIdx.x) * kBlockChannels + static_cast<int>(threadIdx.x) % kWarp * kChannels;
    exists = channel < shape.channels;
    x = {reinterpret_cast<const uint2*>(x_data) + (sample * shape.features + shape.first + channel) / kChannels,
         shape.samples * shape.features / kChannels};
    of_out = (sample * shape.channels + channel) / kChannels;
    out_stride = shape.samples * shape.channels / kChannels;
  }
  // For tensors [positions, samples, channels].
  __device__ __forceinline__ ReadCursor Read(const __nv_bfloat16* data) const {
    return {reinterpret_cast<const uint2*>(data) + of_out, out_stride};
  }
  __device__ __forceinline__ WriteCursor Write(__nv_bfloat16* data) const {
    return {reinterpret_cast<uint2*>(data) + of_out, out_stride};
  }
};

// Positions [begin, end). A strip of this warp, or a document.
struct Span {
  int begin, end;
};

__device__ __forceinline__ Span StripOf(const ConvolutionShape& shape, int length) {
  const int64_t strip = static_cast<int64_t>(blockIdx.y) * kWarps + threadIdx.x / kWarp;
  const int64_t begin = strip * length, end = begin + length;
  return {static_cast<int>(begin < shape.positions ? begin : shape.positions),
          static_cast<int>(end < shape.positions ? end : shape.positions)};
}

__device__ __forceinline__ Span DocumentOf(int position, const ConvolutionShape& shape) {
  if (shape.document_ends == nullptr) return {0, static_cast<int>(shape.positions)};
  int64_t low = 0, high = shape.documents - 1;  // the first document that ends behind the position is in [low, high]
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (shape.document_ends[middle] > position) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return {low == 0 ? 0 : static_cast<int>(shape.document_ends[low - 1]), static_cast<int>(shape.document_ends[low])};
}

// Calls walk(piece, document) for the part of each document in the strip.
template <typename Walk>
__device__ __forceinline__ void EachPiece(Span strip, const ConvolutionShape& shape, Walk walk) {
  while (strip.begin < strip.end) {
    const Span document = DocumentOf(strip.begin, shape);
    const int end = document.end < strip.end ? document.end : strip.end;
    walk(Span{strip.begin, end}, document);
    strip.begin = end;
  }
}

// The parameters of this thread's channels. tap[a]: the weight of the position a positions ago.
struct Parameters {
  float tap[kWindow][kChannels], bias[kChannels];

  __device__ __forceinline__ Parameters(const __nv_bfloat16* weight, const __nv_bfloat16* bias_data, int channel) {
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      bias[c] = __bfloat162float(bias_data[channel + c]);
#pragma unroll
      for (int ago = 0; ago < kWindow; ++ago)
        tap[ago][c] = __bfloat162float(weight[(channel + c) * kWindow + kReach - ago]);
    }
  }

  // The sum before SiLU at a position of slot `slot`. x is a ring: position t is in slot t % kWindow, counted from the
  // start of the piece.
  __device__ __forceinline__ float Sum(const float (&x)[kWindow][kChannels], int slot, int c) const {
    float sum = bias[c];
#pragma unroll
    for (int ago = 0; ago < kWindow; ++ago) sum += tap[ago][c] * x[(slot + kWindow - ago) % kWindow][c];
    return sum;
  }
};

// Fills the ring with the positions before a piece: zero where they are not of its document.
__device__ __forceinline__ void LoadHistory(const ReadCursor& x, Span piece, Span document,
                                            float (&ring)[kWindow][kChannels]) {
#pragma unroll
  for (int ago = 1; ago < kWindow; ++ago) {
    const int position = piece.begin - ago;
    Widen(position >= document.begin ? *x.From(position).at : uint2{0, 0}, ring[kWindow - ago]);
  }
}

// What a thread reads, `kAhead` positions before it is needed. Behind `end` everything is zero.
template <int kAhead>
struct Reader {
  ReadCursor cursor;
  int position, end;
  uint2 ahead[kAhead];

  __device__ __forceinline__ Reader(const ReadCursor& from, int begin, int behind)
      : cursor(from.From(begin)), position(begin), end(behind) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) Request(i);
  }
  // The values of the next position. `i` counts positions modulo kAhead.
  __device__ __forceinline__ void Next(int i, float (&values)[kChannels]) {
    Widen(ahead[i], values);
    Request(i);
  }

 private:
  __device__ __forceinline__ void Request(int i) {
    ahead[i] = position < end ? *cursor.at : uint2{0, 0};
    ++position;
    cursor.Advance();
  }
};

__global__ void __launch_bounds__(kWarps* kWarp, 5)
    ConvolutionKernel(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                      __nv_bfloat16* out, ConvolutionShape shape) {
  constexpr int kAhead = 2 * kWindow;
  const ThreadWork work(x, shape);
  if (!work.exists) return;
  const Parameters parameters(weight, bias, work.channel);
  EachPiece(StripOf(shape, kForwardStrip), shape, [&](Span piece, Span document) {
    float ring[kWindow][kChannels];
    Reader<kAhead> reader(work.x, piece.begin, piece.end);
    WriteCursor write = work.Write(out).From(piece.begin);
    LoadHistory(work.x, piece, document, ring);
    const auto step = [&](int i, bool exists) {
      const int slot = i % kWindow;
      reader.Next(i, ring[slot]);
      float y[kChannels];
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        const float sum = parameters.Sum(ring, slot, c);
        y[c] = sum * Sigmoid(sum);
      }
      if (exists) *write.at = Narrow(y);
      write.Advance();
    };
    int start = piece.begin;
    for (; start + kAhead <= piece.end; start += kAhead) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) step(i, true);
    }
    if (start == piece.end) return;
#pragma unroll
    for (int i = 0; i < kAhead; ++i) step(i, start + i < piece.end);
  });
}

// Gradients of the parameters of a thread's channels.
struct ParameterSums {
  float tap[kWindow][kChannels], bias[kChannels];

  // `dsum`: of the position in slot `slot` of the ring x.
  __device__ __forceinline__ void Add(const float (&dsum)[kChannels], const float (&x)[kWindow][kChannels], int slot) {
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      bias[c] += dsum[c];
#pragma unroll
      for (int ago = 0; ago < kWindow; ++ago) tap[ago][c] += dsum[c] * x[(slot + kWindow - ago) % kWindow][c];
    }
  }
};

// Adds the sums of the warps of a thread block, in their order, and writes them to this block's row of the partial
// sums: those of the weight [channels, kWindow], then those of the bias [channels].
__device__ void WritePartials(const ParameterSums& sums, int64_t channels, float* partials) {
  constexpr int kValues = kWindow * kChannels + kChannels;  // of a thread
  constexpr int kWeights = kBlockChannels * kWindow;        // of a thread block
  __shared__ float values[kWarps][kValues][kWarp + 1];      // + 1: neighbours in a column are in different banks
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int c = 0; c < kChannels; ++c) {
#pragma unroll
    for (int ago = 0; ago < kWindow; ++ago) values[warp][c * kWindow + kReach - ago][lane] = sums.tap[ago][c];
    values[warp][kWindow * kChannels + c][lane] = sums.bias[c];
  }
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kBlockChannels;
  float* row = partials + (static_cast<int64_t>(blockIdx.z) * gridDim.y + blockIdx.y) * channels * (kWindow + 1);
  for (int i = static_cast<int>(threadIdx.x); i < kValues * kWarp; i += kWarps * kWarp) {
    const bool of_weight = i < kWeights;
    const int of_bias = i - kWeights;
    const int64_t channel = first + (of_weight ? i / kWindow : of_bias);
    if (channel >= channels) continue;
    const int owner = of_weight ? i / (kWindow * kChannels) : of_bias / kChannels;
    const int value = of_weight ? i % (kWindow * kChannels) : kWindow * kChannels + of_bias % kChannels;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += values[w][value][owner];
    row[of_weight ? first * kWindow + i : channels * kWindow + channel] = sum;
  }
}

// At position t the gradient of the sum before SiLU becomes known, and with it the gradient of the input at t - 3,
// which the outputs at t - 3 ... t have read. So a piece is followed for three more positions, which belong to the next
// one.
__global__ void __launch_bounds__(kWarps* kWarp, 4)
    ConvolutionGradientKernel(const __nv_bfloat16* dout, const __nv_bfloat16* x, const __nv_bfloat16* weight,
                              const __nv_bfloat16* bias, __nv_bfloat16* dx, float* partials, ConvolutionShape shape) {
  const ThreadWork work(x, shape);
  ParameterSums sums = {};
  if (work.exists) {
    const Parameters parameters(weight, bias, work.channel);
    EachPiece(StripOf(shape, kBackwardStrip), shape, [&](Span piece, Span document) {
      float ring[kWindow][kChannels], dsum[kWindow][kChannels] = {};
      const int stop = piece.end + kReach;  // behind the last position that is followed
      // Nothing behind the document has read a position of it.
      const int known = stop < document.end ? stop : document.end;
      Reader<kWindow> x_reader(work.x, piece.begin, known), dout_reader(work.Read(dout), piece.begin, known);
      WriteCursor write = work.Write(dx).From(piece.begin - kReach);
      LoadHistory(work.x, piece, document, ring);
      const auto step = [&](int slot, bool own, bool complete) {
        float dy[kChannels], back[kChannels];
        x_reader.Next(slot, ring[slot]);
        dout_reader.Next(slot, dy);
#pragma unroll
        for (int c = 0; c < kChannels; ++c) {
          const float sum = parameters.Sum(ring, slot, c);
          dsum[slot][c] = dy[c] * SiluSlope(sum, Sigmoid(sum));
          back[c] = 0;
#pragma unroll
          for (int ago = 0; ago < kWindow; ++ago)  // dsum of the position three before, then of the next ones
            back[c] += parameters.tap[ago][c] * dsum[(slot + 1 + ago) % kWindow][c];
        }
        if (own) sums.Add(dsum[slot], ring, slot);
        if (complete) *write.at = Narrow(back);
        write.Advance();
      };
      int start = piece.begin;
      for (; start + kWindow <= piece.end; start += kWindow) {
#pragma unroll
        for (int slot = 0; slot < kWindow; ++slot) step(slot, true, slot == kReach || start > piece.begin);
      }
      for (; start < stop; start += kWindow) {
#pragma unroll
        for (int slot = 0; slot < kWindow; ++slot) {
          const int position = start + slot;
          step(slot, position < piece.end, position - kReach >= piece.begin && position < stop);
        }
      }
    });
  }
  if (partials != nullptr) WritePartials(sums, shape.channels, partials);
}

// Neighbouring blocks, which run at the same time, have neighbouring channels of the same positions.
dim3 Blocks(const ConvolutionShape& shape, int strip) {
  const auto parts = [](int64_t whole, int64_t part) { return static_cast<unsigned>((whole + part - 1) / part); };
  return dim3(parts(shape.channels, kBlockChannels), parts(shape.positions, strip * kWarps),
              static_cast<unsigned>(shape.samples));
}

bool Empty(const ConvolutionShape& shape) { return shape.positions * shape.samples * shape.channels == 0; }

}  // namespace

void LaunchConvolution(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                       __nv_bfloat16* out, const ConvolutionShape& shape, cudaStream_t stream) {
  if (Empty(shape)) return;
  ConvolutionKernel<<<Blocks(shape, kForwardStrip), kWarps * kWarp, 0, stream>>>(x, weight, bias, out, shape);
}

int64_t ConvolutionPartials(const ConvolutionShape& shape) {
  return Empty(shape) ? 0 : static_cast<int64_t>(Blocks(shape, kBackwardStrip).y) * shape.samples;
}

void LaunchConvolutionGradient(const __nv_bfloat16* dout, const __nv_bfloat16* x, const __nv_bfloat16* weight,
                               const __nv_bfloat16* bias, __nv_bfloat16* dx, float* partials,
                               const ConvolutionShape& shape, cudaStream_t stream) {
  if (Empty(shape)) return;
  ConvolutionGradientKernel<<<Blocks(shape, kBackwardStrip), kWarps * kWarp, 0, stream>>>(dout, x, weight, bias, dx,
                                                                                          partials, shape);
}

}  // namespace planwright::executor::ops
