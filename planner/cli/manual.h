// The table of commands as pages: as text for a terminal, and as input of man.
#pragma once

#include <string>

#include "planner/cli/command.h"

namespace planwright {

// `plan help COMMAND`, and `plan help`.
std::string HelpText(const CliCommand& command);
std::string OverviewText();

// A page for `man`, in section 1: "plan-launch". And plan(1), which lists the commands.
std::string ManPage(const CliCommand& command);
std::string ManOverview();
// Whether a file that begins so is one of these pages.
bool BeginsManPage(std::string_view head);

}  // namespace planwright
