#include "planner/predict/rates/rates.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace planwright {
namespace {

// Seconds for so many bytes or FLOPs at a speed; 0: unlimited.
double At(double amount, double speed) { return speed > 0 ? amount / speed : 0; }

}  // namespace

std::array<KindRate, kOpKinds> ShippedKindRates() {
  std::array<KindRate, kOpKinds> rates;
  const auto set = [&](OpKind kind, KindRate rate) { rates[static_cast<size_t>(kind)] = rate; };
  // The smaller a product, the more its operands weigh: hidden sizes of 2688 reach 0.70 of the peak, 1280 reach 0.58.
  for (OpKind kind : {OpKind::kLinear, OpKind::kLinearInputGrad})
    set(kind, {.products = 0.9, .passes = 0, .beside = 2});
  // Sums of gradients come and go in fp32 while it computes.
  set(OpKind::kLinearWeightGrad, {.products = 0.9, .passes = 0, .beside = 1.3});
  for (OpKind kind : {OpKind::kExperts, OpKind::kGatedExperts}) set(kind, {.products = 0.58, .beside = 0.1});
  set(OpKind::kExpertsGrad, {.products = 0.58, .beside = 0.21});
  // Of 128 small experts, whose sums are a third of the time.
  set(OpKind::kGatedExpertsGrad, {.products = 0.58, .beside = 0.46});
  // Of the flash kernel on Hopper: forward as its authors say of heads of 128, and the backward as much slower beside
  // it as on heads of 64, where both were measured here.
  for (OpKind kind : {OpKind::kCausalAttention, OpKind::kCausalAttentionAllKv})
    set(kind, {.products = 0.53, .flash = 0.35});
  // Its FLOPs are counted as twice those of the forward, and it computes the scores a second time.
  for (OpKind kind : {OpKind::kCausalAttentionGrad, OpKind::kCausalAttentionAllKvGrad})
    set(kind, {.products = 0.36, .flash = 0.22});
  // Heads of 80 features fill the tensor cores badly.
  set(OpKind::kPackedAttention, {.products = 0.38});
  set(OpKind::kPackedAttentionGrad, {.products = 0.33});
  // Chains of kernels whose products are small: bytes decide.
  set(OpKind::kMambaScan, {.passes = 2.7});
  set(OpKind::kMambaScanGrad, {.passes = 4.2});
  set(OpKind::kMambaConv, {.passes = 1.3});
  set(OpKind::kMambaConvGrad, {.passes = 2.6});
  for (OpKind kind : {OpKind::kRoute, OpKind::kRouteGrad}) set(kind, {.passes = 2});
  // With 128 experts, of which a token has 8.
  set(OpKind::kRouteSoftmax, {.passes = 5.4});
  set(OpKind::kRouteSoftmaxGrad, {.passes = 4.5});
  set(OpKind::kPermuteRows, {.passes = 1.2});
  set(OpKind::kSelectRows, {.passes = 1.2});
  // Long streams of numbers reach 0.87 of the memory's speed.
  for (OpKind kind : {OpKind::kBeginStep, OpKind::kScaleGradients, OpKind::kSquareNorm, OpKind::kAdamW})
    set(kind, {.passes = 0.92});
  return rates;
}

Rates::Rates(RateTable table, const DeviceProfile& profile, int ranks) : table_(table) {
  if (!profile.measured()) return;
  const auto measured = std::make_shared<const MeasuredRates>(profile, ranks);
  Device& device = table_.device;
  // Products would stay FLOPs, beside seconds of all else.
  if (device.bf16 == 0 && measured->most_flops() == 0) return;
  measured_ = measured;
  const auto fill = [](double& speed, double best, double share) {
    if (speed == 0) speed = best / share;
  };
  const MeasuredRates::Messages within = measured_->messages(table_.transport, GroupReach::kWithinNodes),
                                across = measured_->messages(table_.transport, GroupReach::kAcrossNodes);
  if (device.node_link == 0) table_.latency = within.latency.value_or(across.latency.value_or(table_.latency));
  if (device.network == 0 && across.latency) table_.node_latency = std::max(0.0, *across.latency - table_.latency);
  if (device.bf16 == 0) {
    device.bf16 = device.fp32 = device.fp64 = measured_->most_flops();
    for (KindRate& kind : table_.kinds) kind.products = 1;
  }
  fill(device.memory_speed, measured_->most_bytes(), table_.memory);
  // Where one of the two has no message that shows it, the other is the best guess, and after it the memory.
  const auto first = [](double a, double b, double c) { return a > 0 ? a : b > 0 ? b : c; };
  fill(device.node_link, first(within.speed, across.speed, measured_->most_bytes()), table_.link);
  fill(device.network, first(across.speed, within.speed, measured_->most_bytes()), table_.network);
}

Seconds Rates::Compute(const ComputeUse& use) const {
  if (measured_) {
    if (const std::optional<Seconds> found = measured_->Compute(use)) return *found;
  }
  return EstimateCompute(use);
}

Seconds Rates::Communication(const CommunicationUse& use) const {
  if (const std::optional<Seconds> found = HandOver(use)) return *found;
  if (measured_ && use.members > 1) {
    if (const std::optional<Seconds> found = BeyondLatency(use)) return *found;
    if (const std::optional<Seconds> found = measured_->Communication(use)) return *found;
  }
  return EstimateCommunication(use);
}

std::optional<Seconds> Rates::HandOver(const CommunicationUse& use) const {
  // Linux lets a connection have so much on the way (tcp_wmem). The rest has to wait.
  constexpr double kBuffer = 4 << 20;
  if (!use.sends_only || table_.transport != Transport::kGloo || use.bytes > kBuffer || !known()) return std::nullopt;
  // What the sender's host has taken it sends by itself.
  return Seconds{0};
}

double Rates::Announcement(const CommunicationUse& use) const {
  const bool announced = use.kind == OpKind::kExchange && table_.transport == Transport::kGloo && !use.sends_only;
  return announced && known() && use.members > 1 ? RoundLatency(use) / 2 : 0;  // the first half of a round
}

double Rates::NetworkShare(const CommunicationUse& use, double seconds) const {
  const double network = table_.network * table_.device.network;
  if (!known() || use.members <= 1 || use.nodes <= 1 || use.sends_only || seconds <= 0) return 0;
  return std::min(1.0, At(TrafficOf(use, table_.transport).network, network) / seconds);
}

double Rates::RoundLatency(const CommunicationUse& use) const {
  // Of NCCL's tree or ring over nodes the latency grows with their number. Gloo's rounds are counted.
  const bool gloo = table_.transport == Transport::kGloo;
  return table_.latency + table_.node_latency * (gloo ? (use.nodes > 1 ? 1 : 0) : std::log2(std::max(1, use.nodes)));
}

std::optional<Seconds> Rates::BeyondLatency(const CommunicationUse& use) const {
  // Of a shorter share the point tells a latency: its rate would be far too slow for what is longer.
  constexpr double kShare = 0.125;
  const std::optional<MeasuredRates::Message> longest = measured_->LongestMessage(use);
  if (!longest || use.bytes <= longest->bytes) return std::nullopt;
  const auto estimate = [&](double bytes) {
    CommunicationUse other = use;
    other.bytes = bytes;
    return EstimateCommunication(other).seconds;
  };
  const double whole = estimate(use.bytes), at_longest = estimate(longest->bytes);
  if (at_longest - estimate(0) >= kShare * longest->seconds || whole == at_longest) return std::nullopt;
  return Seconds{longest->seconds + whole - at_longest, Known::kEstimated};
}

Seconds Rates::HostLaunch(OpKind kind) const {
  if (measured_) {
    if (const std::optional<Seconds> found = measured_->HostLaunch(kind)) return *found;
  }
  return {table_.launch[static_cast<size_t>(OpClassOf(kind))]};
}

std::optional<double> Rates::CopyToHost(double bytes) const {
  // CPU ranks copy within the memory of the host: they read and write.
  const bool cpus = table_.device.gpu == "none";
  const double speed =
      cpus ? table_.memory * table_.device.memory_speed / 2 : table_.host_link * table_.device.host_link;
  if (!known() || speed == 0) return std::nullopt;
  return bytes / speed;
}

double Rates::Beside(OpKind kind) const {
  const std::optional<double> found = measured_ ? measured_->Beside(kind) : std::nullopt;
  return found.value_or(table_.beside);
}

double Rates::MostBeside() const {
  double most = table_.beside;
  for (size_t kind = 0; kind < kOpKinds; ++kind) most = std::max(most, Beside(static_cast<OpKind>(kind)));
  return most;
}

double Rates::Skew(OpKind kind, double fullest) const { return measured_ ? measured_->Skew(kind, fullest) : 1; }

Seconds Rates::EstimateCompute(const ComputeUse& use) const {
  if (!known()) return {use.flops};
  const KindRate& kind = table_.kinds[static_cast<size_t>(use.kind)];
  const double memory = table_.memory * table_.device.memory_speed;
  const double share = use.flash && table_.device.cudnn && kind.flash > 0 ? kind.flash : kind.products;
  const double products = At(use.flops, share * table_.device.peak(DTypeName(use.dtype)));
  const double seconds = std::max(products, At(kind.passes * use.bytes, memory)) + At(kind.beside * use.bytes, memory);
  return {seconds > 0 ? table_.start + seconds : 0};
}

Seconds Rates::EstimateCommunication(const CommunicationUse& use) const {
  if (!known() || use.members <= 1) return {};
  const Traffic traffic = TrafficOf(use, table_.transport);
  const double link = table_.link * table_.device.node_link, network = table_.network * table_.device.network;
  return {traffic.rounds * RoundLatency(use) + std::max(At(traffic.link, link), At(traffic.network, network))};
}

namespace {

Rates RatesWith(const Cluster& cluster, int ranks) {
  RateTable table;
  table.device = DeviceOf(cluster);
  if (cluster.gpu == "none") {
    table.transport = Transport::kGloo;
  } else {
    constexpr auto at = [](OpClass op_class) { return static_cast<size_t>(op_class); };
    table.beside = 0.15;
    table.launch[at(OpClass::kData)] = 20e-6;
    table.launch[at(OpClass::kCompute)] = 10e-6;
    table.launch[at(OpClass::kCommunication)] = 20e-6;
    table.launch[at(OpClass::kState)] = 10e-6;
  }
  return Rates(table, cluster.profile, ranks);
}

}  // namespace

void KeepAskedPoints(const Plan& plan, DeviceProfile& profile) {
  std::set<OpKind> kinds;
  const auto add = [&](const std::vector<Instruction>& list) {
    for (const Instruction& instruction : list) kinds.insert(instruction.kind);
  };
  for (const Block& block : plan.blocks) add(block.body);
  for (const Role& role : plan.roles) add(role.step);
  std::erase_if(profile.compute, [&](const MeasuredCompute& point) {
    return !kinds.contains(point.kind) || point.dtype != plan.dtype();
  });
  std::erase_if(profile.communication, [&](const MeasuredCommunication& point) { return !kinds.contains(point.kind); });
  std::erase_if(profile.launch, [&](const MeasuredLaunch& point) { return !kinds.contains(point.kind); });
}

Rates RatesOf(const Plan& plan) {
  return RatesWith(plan.cluster, std::max(1, std::min(plan.world_size, plan.cluster.gpus_per_node)));
}

Rates RatesOf(const Cluster& cluster) { return RatesWith(cluster, cluster.gpus_per_node); }

}  // namespace planwright
