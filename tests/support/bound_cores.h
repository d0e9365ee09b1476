// What ranks said of the cores on which they may run (the word `cores` of tests/launch/fake_rank.cc).
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <set>
#include <sstream>
#include <string>

namespace planwright::testing {

// "cores 0-3,8"
inline std::set<int> CoresIn(const std::string& line) {
  std::set<int> cores;
  std::istringstream list(line.substr(line.find("cores ") + 6));
  for (std::string part; std::getline(list, part, ',');) {
    const size_t dash = part.find('-');
    const int first = std::stoi(part), last = dash == std::string::npos ? first : std::stoi(part.substr(dash + 1));
    for (int core = first; core <= last; ++core) cores.insert(core);
  }
  return cores;
}

inline std::set<int> CoresOfThisProcess() {
  std::set<int> cores;
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.insert(core);
  }
  return cores;
}

// Two ranks that use GPUs have cores of their own, unless there is only one.
inline void ExpectOwnCores(const std::string& one, const std::string& other) {
  const std::set<int> first = CoresIn(one), second = CoresIn(other), all = CoresOfThisProcess();
  if (all.size() < 2) {
    EXPECT_EQ(first, all);
    EXPECT_EQ(second, all);
    return;
  }
  for (const int core : first) {
    EXPECT_TRUE(all.contains(core)) << core;
    EXPECT_FALSE(second.contains(core)) << core;
  }
  for (const int core : second) EXPECT_TRUE(all.contains(core)) << core;
  EXPECT_FALSE(first.empty());
  EXPECT_FALSE(second.empty());
}

}  // namespace planwright::testing
