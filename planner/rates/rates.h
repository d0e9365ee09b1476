// How long one instruction takes on a device of a cluster, and how that is known (docs/step_time.md#rates). From the
// data sheet and the shares of kind_rates.h.
#pragma once

#include <array>

#include "planner/plan/instruction.h"
#include "planner/plan/plan.h"
#include "planner/rates/device.h"
#include "planner/rates/kind_rates.h"

namespace planwright {

// How a figure is known.
enum class Known {
  kMeasured,   // at this size
  kBetween,    // between two sizes that were measured
  kEstimated,  // from data sheets and shares
};

struct Seconds {
  double seconds = 0;
  Known known = Known::kEstimated;
};

// One use of an operation that computes or changes state, at mean sizes.
struct ComputeUse {
  OpKind kind{};
  double flops = 0;
  // Of operands on the device: inputs, outputs, parameters and what else it reads or writes. What is read and written
  // counts twice (sums of gradients).
  double bytes = 0;
  DType dtype = DType::kBf16;  // of its products
};

// One communication as one member sees it.
struct CommunicationUse {
  OpKind kind{};
  // Of the whole value. A gather: what it makes. A reduce-scatter: what it reads. All_reduce, broadcast: the value.
  // All_to_all and reshard: what the member has before. Exchange: the larger of what it sends and receives.
  double bytes = 0;
  int members = 1;
  int per_node = 1;  // members on the fullest node
  int nodes = 1;
};

// What Rates are made of, without measured figures. Speeds of 0 are unlimited.
struct RateTable {
  Device device;
  std::array<KindRate, kOpKinds> kinds = ShippedKindRates();
  double memory = 0.8, link = 0.68, network = 0.8;  // shares of the data sheet
  double beside = 1;                             // the speed at which work goes on beside a communication of its device
  double start = 3e-6;                           // seconds until a kernel does its work
  double latency = 30e-6, node_latency = 10e-6;  // of a communication; more for each doubling of nodes
  std::array<double, 6> launch{};                // seconds of the host, by OpClass
};

class Rates {
 public:
  explicit Rates(RateTable table) : table_(table) {}

  Seconds Compute(const ComputeUse& use) const;
  Seconds Communication(const CommunicationUse& use) const;
  Seconds HostLaunch(OpKind kind) const { return {table_.launch[static_cast<size_t>(OpClassOf(kind))]}; }

  double Beside() const { return table_.beside; }

  // False: the device is unknown. "Seconds" are then FLOPs, and what has none takes no time.
  bool known() const { return table_.device.bf16 > 0; }

 private:
  RateTable table_;
};

// Of the device that `cluster` names.
Rates RatesOf(const Cluster& cluster);

}  // namespace planwright
