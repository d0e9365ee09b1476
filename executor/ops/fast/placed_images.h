// The images of a packed batch on the device, for kernels (executor/kernels/image_rows.h). Only files of the CUDA build
// include this.
#pragma once

#include "executor/kernels/image_rows.h"
#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// What this rank's part has of the images that input 1 of an instruction says. They are a few numbers each, so they
// come to the device in one small copy.
class ImagesOnDevice {
 public:
  ImagesOnDevice(const ComputeContext& context, at::Device device);

  PlacedImages placed() const;
  // i64 [2,P]: the row and the column of each patch in its image.
  at::Tensor Places() const;

 private:
  at::Tensor numbers_;  // i64 [images, 5]
  int64_t patches_ = 0;
};

}  // namespace planwright::executor::ops
