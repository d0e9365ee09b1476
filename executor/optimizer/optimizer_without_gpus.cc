// What a build without CUDA has in place of optimizer_on_gpu.cc.
#include "executor/optimizer/optimizer.h"

namespace planwright::executor {

const BucketForms* FastBucketForms() { return nullptr; }

}  // namespace planwright::executor
