// Starting real programs and waiting for them, for whole stories.
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

// argv[0] is a path. `environment` adds NAME=value pairs to ours.
Started StartProgram(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                     const std::string& output);

// Exit status (128 + signal when killed), or nothing after `limit`.
std::optional<int> WaitFor(pid_t pid, std::chrono::milliseconds limit);

std::string ReadAll(const std::string& path);

// Processes of this machine, not zombies, whose command line holds `text`.
std::vector<pid_t> ProcessesWith(const std::string& text);

}  // namespace planwright::testing
