// Collectives on tensors of any shape, on top of Communicator's flat ones. Each makes a new tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "executor/communication/communicator.h"

namespace planwright::executor {

at::Tensor AllReduce(Communicator& group, const at::Tensor& value, Reduce reduce);

// The members' tensors of equal shape joined along `dim`, in group order.
at::Tensor AllGather(Communicator& group, const at::Tensor& value, int64_t dim);

// This member's part of dim `dim` of the sum.
at::Tensor ReduceScatter(Communicator& group, const at::Tensor& value, int64_t dim);

// counts with size() * n elements -> [size(), n]: row p is what member p has in its row index().
at::Tensor AllToAll(Communicator& group, const at::Tensor& counts);

// Rows to and from each member; counts of any shape [size(), ...] are summed to one number per member.
at::Tensor AllToAllV(Communicator& group, const at::Tensor& rows, const at::Tensor& send_counts,
                     const at::Tensor& receive_counts);

}  // namespace planwright::executor
