// Where the rows of a run stand that came in parts, one from each rank that sent some
// (executor/kernels/run_products.h).
#pragma once

#include "executor/kernels/hopper.cuh"

namespace planwright::executor::ops {

// Parts follow each other in groups of 16 rows, of which the last one of a part may have fewer. So a group never has
// rows of two parts, and as boxes swizzle over 8 rows it can be loaded alone. Groups of 8 have fewer rows that are not
// there, but need twice the loads: with 384 rows in a part products take 4 % longer, outer products 7 %.
constexpr int kGroupRows = 16, kBoxGroups = kBox / kGroupRows;
constexpr int kGroupBytes = kGroupRows * kBox * static_cast<int>(sizeof(__nv_bfloat16));

constexpr int kMostParts = 1024;  // of all runs: kernels keep their ends in shared memory

// How a matrix is loaded whose rows come in parts: a box of 64 rows at a time, or a group.
struct PartMaps {
  CUtensorMap boxes, groups;
};

// The part of run `run` in which a group of the run is. It only goes forward.
class RunPart {
 public:
  // ends: [parts, runs], the row behind each part of each run.
  __device__ RunPart(const int* ends, int parts, int runs, int run)
      : ends_(ends), runs_(runs), behind_(parts * runs), at_(run) {
    Read();
  }

  // Goes on to the part that has `group`, or to the last one. Groups are asked for in ascending order.
  __device__ void GoTo(int group) {
    while (group >= End() && !IsLast()) Next();
  }
  __device__ bool IsLast() const { return at_ + runs_ >= behind_; }
  __device__ void Next() {
    before_ = End();
    at_ += runs_;
    Read();
  }

  // Groups of the run up to the end of this part, and up to the end of those that have all rows.
  __device__ int End() const { return before_ + GroupsOf(rows_); }
  __device__ int FullEnd() const { return before_ + rows_ / kGroupRows; }
  // Rows of the group behind these.
  __device__ int RowsBehindFull() const { return rows_ % kGroupRows; }

  // Of a group of this part: its first row, and how many rows of the run it has.
  __device__ int Row(int group) const { return first_ + (group - before_) * kGroupRows; }
  __device__ int Rows(int group) const { return max(min(rows_ - (group - before_) * kGroupRows, kGroupRows), 0); }
  // Whether the groups of a box from this one on, as far as the run has them, stand one behind the other.
  __device__ bool FillsBox(int group) const { return IsLast() || group + kBoxGroups <= End(); }
  // The first rows of the groups of a box from this one on.
  __device__ void RowsOfBox(int (&rows)[kBoxGroups], int group) {
    int row = Row(group);
#pragma unroll
    for (int i = 0; i < kBoxGroups; ++i, row += kGroupRows) {
      if (group + i == End()) GoTo(group + i), row = Row(group + i);
      rows[i] = row;
    }
  }

  // Groups of a whole run.
  static __device__ int GroupsOf(const int* ends, int parts, int runs, int run) {
    int groups = 0;
    for (int part = 0; part < parts; ++part) {
      const int i = part * runs + run;
      groups += GroupsOf(max(ends[i] - (i == 0 ? 0 : ends[i - 1]), 0));
    }
    return groups;
  }

 private:
  static __device__ int GroupsOf(int rows) { return (rows + kGroupRows - 1) / kGroupRows; }
  __device__ void Read() {
    first_ = at_ == 0 ? 0 : ends_[at_ - 1];
    rows_ = max(ends_[at_] - first_, 0);
  }

  const int* ends_;
  int runs_, behind_;         // behind_: of all parts of all runs
  int at_;                    // which of these this is
  int before_ = 0;            // groups of the run before it
  int first_ = 0, rows_ = 0;  // its rows
};

// ---- On the host ----

inline cudaError_t MapParts(PartMaps* maps, const __nv_bfloat16* matrix, int64_t rows, int64_t columns) {
  const cudaError_t error = MapBoxes(&maps->boxes, matrix, rows, columns);
  return error == cudaSuccess ? MapBoxes(&maps->groups, matrix, rows, columns, kGroupRows) : error;
}

}  // namespace planwright::executor::ops
