// What the steps of a plan communicate, each kind over groups of each shape once.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/predict/rates/uses.h"
#include "planner/wire/records/communication_rounds.h"

namespace planwright {

struct StepCommunication {
  CommunicationUse use;          // the largest of its kind and shape, up to kMostTriedBytes
  std::set<std::string> groups;  // in which it is done: "language.tp"; of an exchange, also names of bridges
};

// Longer messages have the rate of these, and a trial shall take seconds.
inline constexpr double kMostTriedBytes = 1 << 24;

// Over groups whose members are spread evenly over their nodes. And where there are several nodes, an exchange of
// kMostTriedBytes between ranks of two neighbours, which the steps need not contain: of it each pair of nodes tells its
// own time.
std::vector<StepCommunication> StepCommunications(const Plan& plan);

// The same as rounds that ranks time, in the same order.
CommunicationRounds RoundsOfTrial(const Plan& plan);

}  // namespace planwright
