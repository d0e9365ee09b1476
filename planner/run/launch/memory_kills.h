// How many processes the kernel has killed because memory ran out. A rank that it kills looks like any rank that got
// SIGKILL; that this number has risen tells the two apart.
#pragma once

#include <cstdint>
#include <string>

namespace planwright {

struct MemoryKills {
  int64_t count = 0;  // since the cgroup was made, or the machine was started
  std::string where;  // whose count it is, with the limit: "the cgroup /job_7 (limit 2.15 GB)", "this machine"
};

// How many processes were ended in the memory cgroup of this process, version 2 or 1: children are in it, unless they
// were moved. Where it cannot be read: in the whole machine. Zero, without a place, where that cannot be read either.
// `root`: of the file system; empty except in tests.
MemoryKills ReadMemoryKills(const std::string& root = "");

}  // namespace planwright
