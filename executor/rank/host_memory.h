// Host memory for tensors that is refused is reported as such: LibTorch throws its general error then, which has no
// type that tells it from a bug.
#pragma once

namespace planwright::executor {

// From now on a tensor of the host for which there is no memory throws a std::bad_alloc, whose what() has the size.
// Called once, before the first tensor is made.
void ReportRefusedHostMemory();

}  // namespace planwright::executor
