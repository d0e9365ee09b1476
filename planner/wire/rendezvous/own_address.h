// The address of this machine that other nodes can reach, where nobody named an interface.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace planwright {

// The first IPv4 address of an interface that is up and neither the loopback nor a bridge of containers; 127.0.0.1 on a
// machine that has none. Names are not asked: on many machines the own name leads to the loopback.
absl::StatusOr<std::string> OwnAddress();

}  // namespace planwright
