// Every collective over Gloo, compared with a serial reference. Each rank can compute the inputs of all ranks, and so
// the reference.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "executor/communication/backends.h"
#include "executor/communication/communicator.h"
#include "executor/communication/rendezvous.h"
#include "tests/executor/communication/world.h"
#include "tests/support/eventually.h"

namespace planwright::executor {
namespace {

constexpr int kRanks = 3;

// The input of rank `rank`: different on each rank, exact in every dtype used.
at::Tensor Piece(int rank, at::IntArrayRef shape, at::ScalarType dtype) {
  int64_t elements = 1;
  for (int64_t size : shape) elements *= size;
  return (at::arange(elements, at::kLong).remainder(17) + 20 * rank).to(dtype).view(shape);
}

at::Tensor SumOfAll(at::IntArrayRef shape, at::ScalarType dtype) {
  at::Tensor sum = at::zeros(shape, dtype);
  for (int rank = 0; rank < kRanks; ++rank) sum += Piece(rank, shape, dtype);
  return sum;
}

using Body = std::function<void(Communicator& group, int rank)>;

void OverGloo(const Body& body) {
  const std::vector<int> statuses = RunWorld(kRanks, [&](int rank, int port) {
    at::set_num_threads(1);
    Environment environment{.rank = rank,
                            .world_size = kRanks,
                            .local_rank = rank,
                            .address = "127.0.0.1",
                            .port = port,
                            .nonce = "test",
                            .host = "here",
                            .timeout = testing::kPatience};
    auto store = OpenStore(environment);
    if (!store.ok()) throw std::runtime_error(std::string(store.status().message()));
    auto group = MakeGlooCommunicator(*store, "group", {0, 1, 2}, rank, "127.0.0.1", environment.timeout);
    body(*group, rank);
    WaitForAll(environment, "end", environment.timeout, **store);
    return 0;
  });
  EXPECT_EQ(statuses, std::vector<int>(kRanks, 0));
}

const std::vector<at::ScalarType> kDTypes = {at::kLong, at::kFloat, at::kDouble, at::kBFloat16};

TEST(Collectives, AllReduceSumAndMax) {
  OverGloo([](Communicator& group, int rank) {
    for (at::ScalarType dtype : kDTypes) {
      for (std::vector<int64_t> shape : {std::vector<int64_t>{5}, {1}, {2, 3, 4}, {0, 4}}) {
        EXPECT_TRUE(AllReduce(group, Piece(rank, shape, dtype), Reduce::kSum).equal(SumOfAll(shape, dtype)));
        EXPECT_TRUE(AllReduce(group, Piece(rank, shape, dtype), Reduce::kMax).equal(Piece(kRanks - 1, shape, dtype)));
      }
    }
  });
}

TEST(Collectives, AllGatherJoinsAnyDim) {
  OverGloo([](Communicator& group, int rank) {
    for (at::ScalarType dtype : kDTypes) {
      for (int64_t dim : {0, 1, 2}) {
        std::vector<at::Tensor> pieces;
        for (int r = 0; r < kRanks; ++r) pieces.push_back(Piece(r, {2, 3, 4}, dtype));
        EXPECT_TRUE(AllGather(group, pieces[rank], dim).equal(at::cat(pieces, dim))) << dtype << " dim " << dim;
      }
    }
    EXPECT_EQ(AllGather(group, Piece(rank, {0, 4}, at::kFloat), 0).sizes(), (std::vector<int64_t>{0, 4}));
  });
}

TEST(Collectives, ReduceScatterCutsAnyDim) {
  OverGloo([](Communicator& group, int rank) {
    for (at::ScalarType dtype : kDTypes) {
      for (int64_t dim : {0, 1, 2}) {
        std::vector<int64_t> shape = {2, 4, 5};
        shape[dim] = 2 * kRanks;
        const at::Tensor part = ReduceScatter(group, Piece(rank, shape, dtype), dim);
        EXPECT_TRUE(part.equal(SumOfAll(shape, dtype).narrow(dim, 2 * rank, 2))) << dtype << " dim " << dim;
      }
    }
    EXPECT_EQ(ReduceScatter(group, Piece(rank, {6, 0}, at::kFloat), 0).sizes(), (std::vector<int64_t>{2, 0}));
  });
}

// Chunks r and 2 n - 1 - r, taken one position at a time.
at::Tensor ZigzagPieceOf(const at::Tensor& whole, int64_t dim, int rank) {
  const int64_t chunk = whole.size(dim) / (2 * kRanks);
  std::vector<at::Tensor> positions;
  for (int64_t of : {rank, 2 * kRanks - 1 - rank}) {
    for (int64_t i = 0; i < chunk; ++i) positions.push_back(whole.narrow(dim, of * chunk + i, 1));
  }
  return at::cat(positions, dim);
}

TEST(Collectives, ZigzagGatherRestoresTheOrder) {
  OverGloo([](Communicator& group, int rank) {
    for (at::ScalarType dtype : kDTypes) {
      for (int64_t dim : {0, 1, 2}) {
        std::vector<int64_t> shape = {2, 3, 4};
        shape[dim] = 4 * kRanks;
        const at::Tensor whole = Piece(1, shape, dtype);
        EXPECT_TRUE(AllGather(group, ZigzagPieceOf(whole, dim, rank), dim, Cut::kZigzag).equal(whole)) << dim;
      }
    }
  });
}

TEST(Collectives, ZigzagReduceScatterKeepsTwoChunks) {
  OverGloo([](Communicator& group, int rank) {
    for (int64_t dim : {0, 1}) {
      std::vector<int64_t> shape = {2, 3, 4};
      shape[dim] = 4 * kRanks;
      const at::Tensor part = ReduceScatter(group, Piece(rank, shape, at::kDouble), dim, Cut::kZigzag);
      EXPECT_TRUE(part.equal(ZigzagPieceOf(SumOfAll(shape, at::kDouble), dim, rank))) << dim;
    }
    EXPECT_ANY_THROW(ReduceScatter(group, Piece(rank, {kRanks, 2}, at::kFloat), 0, Cut::kZigzag));
  });
}

// Part `rank` of each of these segments of dim 2.
at::Tensor SegmentPieceOf(const at::Tensor& whole, const std::vector<int64_t>& segments, int rank) {
  std::vector<at::Tensor> pieces;
  int64_t at = 0;
  for (int64_t segment : segments) {
    pieces.push_back(whole.narrow(2, at + rank * segment / kRanks, segment / kRanks));
    at += segment;
  }
  return at::cat(pieces, 2);
}

TEST(Collectives, ReshardTradesTheSequenceForFeaturesAndBack) {
  OverGloo([](Communicator& group, int rank) {
    const std::vector<int64_t> segments = {6, 3, 9};
    for (at::ScalarType dtype : kDTypes) {
      const at::Tensor whole = Piece(2, {4 * kRanks, 2, 18}, dtype);
      const at::Tensor sequence = ZigzagPieceOf(whole, 0, rank), features = SegmentPieceOf(whole, segments, rank);
      EXPECT_TRUE(Reshard(group, sequence, {0, 2, 0, segments}).equal(features)) << dtype;
      EXPECT_TRUE(Reshard(group, features, {2, 0, 0, segments}).equal(sequence)) << dtype;
    }
    EXPECT_ANY_THROW(Reshard(group, Piece(rank, {4, 1, 18}, at::kFloat), {0, 2, 0, {6, 3}}));
    EXPECT_ANY_THROW(Reshard(group, Piece(rank, {4, 1, 18}, at::kFloat), {0, 2, 1, segments}));
  });
}

TEST(Collectives, AllToAllTransposesCounts) {
  OverGloo([](Communicator& group, int rank) {
    const at::Tensor mine = Piece(rank, {kRanks * 4}, at::kLong);
    std::vector<at::Tensor> expected;
    for (int r = 0; r < kRanks; ++r) expected.push_back(Piece(r, {kRanks * 4}, at::kLong).narrow(0, rank * 4, 4));
    EXPECT_TRUE(AllToAll(group, mine).equal(at::cat(expected).view({kRanks, 4})));
  });
}

// Rank a sends counts[a][b] rows to b, for several tables, with zeros among them.
TEST(Collectives, AllToAllVMovesRows) {
  OverGloo([](Communicator& group, int rank) {
    const std::vector<std::vector<std::vector<int64_t>>> tables = {
        {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}},
        {{0, 2, 0}, {0, 0, 5}, {0, 0, 0}},  // rank 2 sends nothing, rank 0 receives nothing
        {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
        {{0, 0, 4}, {0, 0, 0}, {1, 0, 0}},
    };
    for (const auto& counts : tables) {
      for (at::ScalarType dtype : kDTypes) {
        auto rows_of = [&](int r) { return Piece(r, {counts[r][0] + counts[r][1] + counts[r][2], 4}, dtype); };
        std::vector<at::Tensor> expected;
        std::vector<int64_t> receive;
        for (int r = 0; r < kRanks; ++r) {
          int64_t first = 0;
          for (int p = 0; p < rank; ++p) first += counts[r][p];
          expected.push_back(rows_of(r).narrow(0, first, counts[r][rank]));
          receive.push_back(counts[r][rank]);
        }
        auto tensor = [](const std::vector<int64_t>& values) {
          at::Tensor result = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
          for (size_t i = 0; i < values.size(); ++i) result.mutable_data_ptr<int64_t>()[i] = values[i];
          return result;
        };
        const at::Tensor got = AllToAllV(group, rows_of(rank), tensor(counts[rank]), tensor(receive));
        EXPECT_TRUE(got.equal(at::cat(expected))) << dtype;
      }
    }
  });
}

// Row counts of three members; a member may have none.
const std::vector<std::vector<int64_t>> kRowCounts = {{1, 2, 3}, {4, 0, 2}, {0, 0, 5}, {0, 0, 0}};

at::Tensor Integers(const std::vector<int64_t>& values) {
  at::Tensor result = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), result.mutable_data_ptr<int64_t>());
  return result;
}

TEST(Collectives, AllGatherVJoinsRowsOfDifferentNumber) {
  OverGloo([](Communicator& group, int rank) {
    for (const auto& counts : kRowCounts) {
      for (at::ScalarType dtype : kDTypes) {
        for (const std::vector<int64_t>& row : {std::vector<int64_t>{}, {4}}) {
          std::vector<at::Tensor> pieces;
          for (int r = 0; r < kRanks; ++r) {
            std::vector<int64_t> shape = {counts[r]};
            shape.insert(shape.end(), row.begin(), row.end());
            pieces.push_back(Piece(r, shape, dtype));
          }
          EXPECT_TRUE(AllGatherV(group, pieces[rank], Integers(counts)).equal(at::cat(pieces))) << dtype;
        }
      }
    }
    // Counts of two sources with two experts each, for every member: in three equal runs.
    const at::Tensor counts = Integers({1, 0, 0, 1, 0, 0, 0, 0, 3, 0, 0, 1}).view({6, 2});
    const std::vector<at::Tensor> pieces = {Piece(0, {2, 3}, at::kDouble), Piece(1, {0, 3}, at::kDouble),
                                            Piece(2, {4, 3}, at::kDouble)};
    EXPECT_TRUE(AllGatherV(group, pieces[rank], counts).equal(at::cat(pieces)));
    EXPECT_TRUE(AllGatherV(group, pieces[rank], counts.flatten()).equal(at::cat(pieces)));
    EXPECT_THROW(AllGatherV(group, Piece(rank, {7, 3}, at::kDouble), counts), c10::Error);
  });
}

TEST(Collectives, ReduceScatterVSumsRowsOfDifferentNumber) {
  OverGloo([](Communicator& group, int rank) {
    for (const auto& counts : kRowCounts) {
      const int64_t rows = counts[0] + counts[1] + counts[2];
      int64_t first = 0;
      for (int r = 0; r < rank; ++r) first += counts[r];
      for (at::ScalarType dtype : kDTypes) {
        for (const std::vector<int64_t>& shape : {std::vector<int64_t>{rows}, {rows, 4}}) {
          const at::Tensor part = ReduceScatterV(group, Piece(rank, shape, dtype), Integers(counts));
          EXPECT_TRUE(part.equal(SumOfAll(shape, dtype).narrow(0, first, counts[rank]))) << dtype;
        }
      }
    }
    EXPECT_THROW(ReduceScatterV(group, Piece(rank, {7, 3}, at::kDouble), Integers({1, 2, 3})), c10::Error);
  });
}

// 1e8 + 1 is rounded to 1e8 in fp32: only the sum in group order is 0, on every member.
TEST(Collectives, ReduceScatterVAddsInGroupOrder) {
  OverGloo([](Communicator& group, int rank) {
    const float terms[kRanks] = {1e8F, 1, -1e8F};
    const at::Tensor part = ReduceScatterV(group, at::full({6}, terms[rank], at::kFloat), Integers({1, 2, 3}));
    EXPECT_TRUE(part.equal(at::zeros({rank + 1}, at::kFloat)));
  });
}

TEST(Collectives, BroadcastFromEachRoot) {
  OverGloo([](Communicator& group, int rank) {
    for (at::ScalarType dtype : kDTypes) {
      for (int root = 0; root < kRanks; ++root) {
        at::Tensor value = Piece(rank, {3, 2}, dtype);
        group.Broadcast(value, root);
        EXPECT_TRUE(value.equal(Piece(root, {3, 2}, dtype)));
      }
    }
  });
}

// A ring in both directions at once, two messages for each pair: deadlocks unless sends and receives progress together.
TEST(Collectives, ExchangeProgressesTogetherAndKeepsOrder) {
  OverGloo([](Communicator& group, int rank) {
    constexpr int64_t kElements = 1 << 18;  // beyond any socket buffer
    std::vector<Message> messages;
    std::vector<at::Tensor> received;
    for (int step : {1, 2}) {
      const int to = (rank + step) % kRanks, from = (rank + kRanks - step) % kRanks;
      for (int k = 0; k < 2; ++k) {
        messages.push_back({&group, to, true, at::full({kElements}, 10.0 * rank + to + 100 * k, at::kDouble)});
        at::Tensor in = at::empty({kElements}, at::kDouble);
        messages.push_back({&group, from, false, in});
        received.push_back(in);
      }
    }
    group.Exchange(messages);
    size_t i = 0;
    for (int step : {1, 2}) {
      const int from = (rank + kRanks - step) % kRanks;
      for (int k = 0; k < 2; ++k, ++i) EXPECT_TRUE(received[i].eq(10.0 * from + rank + 100 * k).all().item<bool>());
    }
  });
}

}  // namespace
}  // namespace planwright::executor
