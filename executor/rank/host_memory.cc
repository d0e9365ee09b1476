#include "executor/rank/host_memory.h"

#include <absl/strings/str_cat.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <new>
#include <string>

namespace planwright::executor {
namespace {

class RefusedMemory : public std::bad_alloc {
 public:
  explicit RefusedMemory(size_t bytes) : what_(absl::StrCat(bytes, " bytes for a tensor were refused")) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  const std::string what_;
};

// LibTorch's own allocator with another exception.
class HostAllocator : public c10::Allocator {
 public:
  explicit HostAllocator(c10::Allocator& inner) : inner_(inner) {}
  c10::DataPtr allocate(size_t bytes) override {
    try {
      return inner_.allocate(bytes);
    } catch (const c10::Error&) {
      throw RefusedMemory(bytes);
    }
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_.raw_deleter(); }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  c10::Allocator& inner_;
};

}  // namespace

void ReportRefusedHostMemory() {
  // Never destroyed: tensors may outlive everything else.
  c10::SetCPUAllocator(new HostAllocator(*c10::GetDefaultCPUAllocator()), /*priority=*/1);
}

}  // namespace planwright::executor
