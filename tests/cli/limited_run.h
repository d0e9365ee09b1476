// Runs a program under limits on memory and time.
#pragma once

#include <sys/resource.h>

#include <string>
#include <vector>

namespace planwright::testing {

struct LimitedEnd {
  int status = 0;      // as wait() returns it
  double seconds = 0;  // of processor time
  // The largest resident size. Never less than that of the calling process, which counts until exec.
  double megabytes = 0;
};

// stdin, stdout and stderr are /dev/null. `memory`: bytes of address space. SIGALRM ends a program that runs too long.
LimitedEnd RunLimited(const std::string& program, const std::vector<std::string>& arguments, rlim_t memory);

}  // namespace planwright::testing
