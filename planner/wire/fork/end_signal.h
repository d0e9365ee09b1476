// The signal by which a launcher or an agent ends its ranks. It is none that a batch system sends to all processes of a
// job that it ends (SIGTERM): ranks ignore that one, and their launcher, which gets it too, asks them to save.
#pragma once

#include <signal.h>

namespace planwright {

inline constexpr int kEndSignal = SIGINT;

}  // namespace planwright
