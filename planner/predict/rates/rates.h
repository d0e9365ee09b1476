// How long one instruction takes on a device of a cluster, and how that is known (docs/step_time.md#rates). By what was
// measured on such a device; without that from its data sheet and the shares of RateTable.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>

#include "planner/plan/instruction.h"
#include "planner/plan/plan.h"
#include "planner/predict/rates/device.h"
#include "planner/predict/rates/measured_rates.h"
#include "planner/predict/rates/traffic.h"
#include "planner/predict/rates/uses.h"

namespace planwright {

inline constexpr size_t kOpKinds = 0
#define OP(id, name, op_class, text) +1
#include "planner/plan/ops.def"
#undef OP
    ;

// How fast a kind of instruction runs on a GPU, as shares of the data sheet (docs/step_time.md#shares).
struct KindRate {
  // Of the dense peak, that its products reach in a step that goes on for seconds, where power limits them.
  double products = 0.66;
  // How often it reads or writes its operands, in all: a kind of several kernels does so more than once. It takes what
  // is longer, products or passes.
  double passes = 1;
  double beside = 0;  // passes that products do not hide, in addition: sums of gradients, activations between products
  double flash = 0;   // `products` by LibTorch's flash kernel, on devices where `products` are cuDNN's; 0: the same
};

// By OpKind. The table is provisional: it was measured on one H200, in bf16, and stands for every device and precision.
// Kinds without products read and write each operand once, unless the table says more.
std::array<KindRate, kOpKinds> ShippedKindRates();

// What Rates are made of, without measured figures. Speeds of 0 are unlimited.
struct RateTable {
  Device device;
  std::array<KindRate, kOpKinds> kinds = ShippedKindRates();
  double memory = 0.8, link = 0.68, network = 0.8, host_link = 0.84;  // shares of the data sheet
  double beside = 1;    // the speed at which work goes on beside a communication of its device
  double start = 3e-6;  // seconds until a kernel does its work
  // Of a communication; more for each doubling of nodes. With Gloo: of each of its rounds; more where they leave a
  // node.
  double latency = 30e-6, node_latency = 10e-6;
  Transport transport = Transport::kNccl;
  std::array<double, 6> launch{};  // seconds of the host, by OpClass
};

class Rates {
 public:
  explicit Rates(RateTable table) : table_(table) {}
  // Figures of the device that the table lacks become the best that was measured. `ranks`: on the fullest node.
  Rates(RateTable table, const DeviceProfile& profile, int ranks);

  Seconds Compute(const ComputeUse& use) const;
  Seconds Communication(const CommunicationUse& use) const;
  // How much of an exchange is the announcement of who receives, without which Gloo sends nothing; 0 for others, and
  // where no message is received.
  double Announcement(const CommunicationUse& use) const;
  // The part of its `seconds` in which a communication keeps its way out of the node busy: others of the same rank that
  // leave the node share it. 0: it stays in its node, or nobody knows the network.
  double NetworkShare(const CommunicationUse& use, double seconds) const;
  // What the host takes to come to an instruction of this kind and to launch it.
  Seconds HostLaunch(OpKind kind) const;

  // Of copying so many bytes of a device's memory to that of its host; nullopt: nobody knows how fast that is.
  std::optional<double> CopyToHost(double bytes) const;

  // The speed at which an instruction goes on beside one of the other sort (work, or a communication) that its rank
  // launched before, as a share of its own.
  double Beside(OpKind kind) const;
  // The largest of Beside: for bounds of what overlap can save.
  double MostBeside() const;
  // How much longer an instruction on rows of experts takes if the fullest expert of its rank has `fullest` times the
  // mean of the rank's experts (docs/measure.md#what-is-measured). 1 where that was not measured.
  double Skew(OpKind kind, double fullest) const;

  // False: the device is unknown. "Seconds" are then FLOPs, and what has none takes no time.
  bool known() const { return table_.device.bf16 > 0; }
  // Whether some times are of a profile.
  bool measured() const { return measured_ != nullptr; }

 private:
  // Of a message that is longer than all that were measured, if the longest of these shows a latency alone: its time,
  // and the data sheet's for the further bytes.
  std::optional<Seconds> BeyondLatency(const CommunicationUse& use) const;
  double RoundLatency(const CommunicationUse& use) const;
  // Of a member that only sends with Gloo; nullopt: it is none, or sends more than its host takes over.
  std::optional<Seconds> HandOver(const CommunicationUse& use) const;
  Seconds EstimateCompute(const ComputeUse& use) const;
  Seconds EstimateCommunication(const CommunicationUse& use) const;

  RateTable table_;
  std::shared_ptr<const MeasuredRates> measured_;  // null: nothing was
};

// Leaves of a profile the times that instructions of the plan ask for: those of their kinds, and of what computes, in
// the plan's precision. So a plan is predicted alike with all of a profile and with what its file has of it.
void KeepAskedPoints(const Plan& plan, DeviceProfile& profile);

// Of the device that a plan's cluster names, with its profile and as many ranks on a node as the plan has.
Rates RatesOf(const Plan& plan);
// The same where all places of a node have a rank.
Rates RatesOf(const Cluster& cluster);

}  // namespace planwright
