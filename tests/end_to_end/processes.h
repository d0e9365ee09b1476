// Starts the real programs and waits for them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace planwright::testing {

struct Started {
  pid_t pid = -1;
  std::string output;  // file that gets stdout and stderr
};

// argv[0] is a path. `environment`: NAME=value pairs, added to the environment of the test.
Started StartProgram(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                     const std::string& output);

// The exit status (128 + signal if killed); nullopt if it has not ended after `limit`.
std::optional<int> WaitFor(pid_t pid, std::chrono::milliseconds limit);

std::string ReadAll(const std::string& path);

// Processes of this machine, except zombies, whose command line contains `text`.
std::vector<pid_t> ProcessesWith(const std::string& text);

}  // namespace planwright::testing
