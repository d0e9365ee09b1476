// The address of a network interface of this machine.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace planwright {

// The IPv4 address of an interface such as "ib0", "10.0.0.7"; the first, if it has several. InvalidArgument, with the
// interfaces of this machine and their addresses, if there is none of that name, if it is down, or if it has no IPv4
// address.
absl::StatusOr<std::string> InterfaceAddress(const std::string& interface);

}  // namespace planwright
