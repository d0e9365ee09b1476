// The machine that measures, in words for a profile: without names.
#pragma once

#include <string>

namespace planwright {

// "1 host, 2 cores, 8 GB"; "4 hosts, 2 cores each, 8 GB each", as this one has.
std::string HostsText(int hosts);
std::string Today();  // "2026-11-24", UTC

}  // namespace planwright
