// What helps and man pages say of a command beside its options: examples, exit statuses, what else to read. And these
// pages: as text for a terminal, and as input of man.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/cli/command.h"

namespace planwright {

struct ManualExample {
  std::string_view command, does;  // a line for a shell, in the folder of the sources; what it does
};

struct ManualEntry {
  std::string_view command;
  std::vector<ManualExample> examples;
  bool runs = false;                       // it ends with the status of a run; otherwise with 0, 1 or 2
  std::vector<std::string_view> see_also;  // other commands
  std::vector<std::string_view> pages;     // of docs
};

// A bug if the command has none: a test asks for every command.
const ManualEntry& ManualOf(std::string_view command);

// `plan help COMMAND`, and `plan help`.
std::string HelpText(const CliCommand& command);
std::string OverviewText();

// A page for `man`, in section 1: "plan-launch". And plan(1), which lists the commands.
std::string ManPage(const CliCommand& command);
std::string ManOverview();

}  // namespace planwright
