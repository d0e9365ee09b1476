// Collectives on tensors of any shape and along any dim, made from the flat ones of Communicator. Each returns a new
// tensor and leaves its input as it is.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "executor/communication/communicator.h"

namespace planwright::executor {

at::Tensor AllReduce(Communicator& group, const at::Tensor& value, Reduce reduce);

// The members' tensors, all of one shape, joined along `dim` in group order.
at::Tensor AllGather(Communicator& group, const at::Tensor& value, int64_t dim);

// The sum over the members, cut in equal parts along `dim`: this member's part. c10::Error if the dim cannot be cut.
at::Tensor ReduceScatter(Communicator& group, const at::Tensor& value, int64_t dim);

// `counts`, i64 with size() * n elements, as rows of n: row p goes to member p. Returns [size(), n], row p from member
// p.
at::Tensor AllToAll(Communicator& group, const at::Tensor& counts);

// Rows (dim 0) to and from each member. The counts are i64 [size(), ...]; a member's counts are added up to its number
// of rows (one expert rank has several experts).
at::Tensor AllToAllV(Communicator& group, const at::Tensor& rows, const at::Tensor& send_counts,
                     const at::Tensor& receive_counts);

}  // namespace planwright::executor
