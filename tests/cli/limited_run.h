// A program under limits, from fork to end.
#pragma once

#include <sys/resource.h>

#include <string>
#include <vector>

namespace planwright::testing {

struct LimitedEnd {
  int status = 0;      // of wait
  double seconds = 0;  // of processor time
  // resident, at most; at least what the calling process has, since it counts until the child is another program
  double megabytes = 0;
};

// stdin, stdout and stderr are /dev/null. `memory`: bytes of address space. A program that would run for ever is killed
// by SIGALRM in the end.
LimitedEnd RunLimited(const std::string& program, const std::vector<std::string>& arguments, rlim_t memory);

}  // namespace planwright::testing
