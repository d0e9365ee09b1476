// What a communication sends, by the algorithm of its backend: bytes over links and network, and how often one message
// waits for another (docs/step_time.md#traffic).
#pragma once

#include "planner/predict/rates/uses.h"

namespace planwright {

// What moves messages. Ranks on GPUs have NCCL, ranks on CPUs have Gloo (executor/communication/backends.h).
enum class Transport { kNccl, kGloo };

struct Traffic {
  // Bytes that pass each link of a member to others of its node, and each member's share of its node's network; in one
  // direction.
  double link = 0, network = 0;
  double rounds = 1;  // messages one after the other: each waits for the one before it
};

// `use` has at least 2 members.
Traffic TrafficOf(const CommunicationUse& use, Transport transport);

}  // namespace planwright
