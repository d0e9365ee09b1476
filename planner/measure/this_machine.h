// The machine that measures, in words for a profile: without names.
#pragma once

#include <string>

namespace planwright {

std::string HostsText();  // "1 host, 2 cores, 8 GB"
std::string Today();      // "2026-11-24", UTC

}  // namespace planwright
