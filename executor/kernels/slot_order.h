// Kernels that order the choices of tokens by expert (permute_rows.cc and select_rows.cc in
// executor/ops/fast). A slot is one choice of one token: token * k + j. A row is an index in the order by expert. There
// are fewer than 2^31 of them. nvcc compiles the kernels, so nothing of LibTorch is here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

constexpr int64_t kMostOrderedExperts = 512;  // what LaunchOrderSlots takes

// How many parts LaunchOrderSlots counts apart.
int64_t PartsOfSlots(int64_t slots);

struct SlotOrder {
  int64_t* order = nullptr;      // [slots]: the slot of each row
  int* row_of_slot = nullptr;    // [slots]: its inverse
  float* row_weights = nullptr;  // [slots]: the weight of each row
};

// Orders slots by expert, and those of one expert as they are. ids [slots] name experts below `experts`, at most
// kMostOrderedExperts; another id stops the device. weights [slots] are by slot. counts [PartsOfSlots(slots), experts]
// is room for the kernels. At least one slot.
void LaunchOrderSlots(const int64_t* ids, const float* weights, int64_t slots, int64_t experts, int* counts,
                      SlotOrder out, cudaStream_t stream);

// row_of_slot of an order, in which no slot is twice: row_of_slot[order[r]] = r. With row_values [rows] (or null),
// slot_values[order[r]] = row_values[r]. Other slots stay as they are. At least one row.
void LaunchRowsOfSlots(const int64_t* order, const float* row_values, int64_t rows, int* row_of_slot,
                       float* slot_values, cudaStream_t stream);

}  // namespace planwright::executor::ops
