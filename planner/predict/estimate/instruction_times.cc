#include "planner/predict/estimate/instruction_times.h"

#include <algorithm>

#include "planner/plan/lane_fullness.h"
#include "planner/plan/link/first_additions.h"
#include "planner/plan/link/joins.h"
#include "planner/plan/op_costs.h"
#include "planner/plan/sample_documents.h"
#include "planner/plan/shard_map.h"

namespace planwright {
namespace {

// How many times the mean number of rows the fullest rank of an ep group has, where neither the recipe nor a recording
// says it (docs/step_time.md#rows-of-experts).
constexpr double kFullestRank = 1.1;

bool Communicates(const LinkedInstruction& instruction) { return instruction.op_class == OpClass::kCommunication; }

// The entry behind one that can be done as one with it: the next of the program, of the same call.
const LinkedEntry& NextOf(const LinkedEntry& entry) { return *(&entry + 1); }

}  // namespace

InstructionTimes::InstructionTimes(const LinkedProgram& program, const InstructionCosts& costs, const Rates& rates,
                                   CommunicationUses& uses, const RankClass& ranks, const ExpertRows* rows)
    : program_(program), plan_(program.blocks().plan()), costs_(costs), rates_(rates), uses_(uses), ranks_(ranks),
      by_number_(static_cast<size_t>(program.instructions()), -1) {
  // Of each module. Where experts of several lanes meet, all wait in each microbatch for the lane with most images;
  // else they meet at the end of the step.
  std::vector<double> fullest_lane;
  const SampleDocuments documents = DocumentsOfSample(plan_.data, plan_.budget.sequence_length);
  const bool meet = std::any_of(plan_.modules.begin(), plan_.modules.end(),
                                [](const Module& module) { return module.experts() > 0 && module.grid.ep > 1; });
  for (const Module& module : plan_.modules) {
    const auto met = [&](const Fullness& fullness) {
      return meet || module.grid.pp > 1 ? fullness.microbatch : fullness.step;
    };
    fullest_lane.push_back(met(CountedFullness(plan_, module.grid.dp)));
    // No lane has more scores than samples of one document.
    most_documents_.push_back(std::min(met(DocumentFullness(plan_, module.grid.dp)), 1 / documents.share));
  }
  for (const Symbol& symbol : plan_.symbols) {
    auto mean = static_cast<double>(symbol.mean > 0 ? symbol.mean : symbol.maximum);
    // "radio_encoder.patches" is of the largest lane.
    const std::string module = symbol.name.substr(0, symbol.name.find('.'));
    const bool expert_rows = symbol.name.substr(module.size()).starts_with(".expert_rows");
    double fullest = 1;
    for (size_t m = 0; m < plan_.modules.size(); ++m) {
      if (plan_.modules[m].name != module) continue;
      mean *= ranks.of_planned[m];
      if (plan_.modules[m].has_images || symbol.name.ends_with(".image_rows")) fullest = fullest_lane[m];
      const bool unsaid = rows == nullptr && plan_.modules[m].imbalance == 0 && plan_.modules[m].grid.ep > 1;
      if (expert_rows && unsaid && rates.known()) fullest = kFullestRank;
    }
    const double planned = rows != nullptr ? mean : std::max(mean, static_cast<double>(symbol.expected));
    sizes_[symbol.name] = {mean, std::max(planned, mean * fullest), expert_rows};
  }
  if (rows == nullptr) return;
  for (int frame = 0; frame < program.blocks().frames(); ++frame)
    by_frame_.push_back(rows->Find(program.blocks().frame(frame)));
}

const LayerRows* InstructionTimes::RowsOf(const LinkedEntry& entry) const {
  if (by_frame_.empty()) return nullptr;
  const int frame = program_.calls()[entry.call].frame;
  return frame < 0 ? nullptr : by_frame_[static_cast<size_t>(frame)];
}

uint32_t InstructionTimes::KindOf(const LinkedEntry& entry) {
  const LayerRows* layer = RowsOf(entry);
  const int number = entry.instruction->number;
  int& kind =
      layer ? by_layer_.try_emplace({number, layer}, -1).first->second : by_number_[static_cast<size_t>(number)];
  if (kind < 0) {
    fullest_ = layer ? FullestOf(*layer, *entry.instruction) : 1;
    fullest_expert_ = layer ? layer->fullest_expert : 1;
    kind = static_cast<int>(kinds_.size());
    kinds_.push_back(Find(entry));
  }
  return static_cast<uint32_t>(kind);
}

double InstructionTimes::FullestOf(const LayerRows& layer, const LinkedInstruction& instruction) const {
  // A GPU has its own share of the network. CPU ranks have the whole of it together, so what a node gets decides.
  const bool together = plan_.cluster.gpu == "none" && Communicates(instruction) && instruction.group >= 0 &&
                        uses_.MembersOf(instruction.group, ranks_.first_rank()).nodes > 1;
  return together ? layer.fullest_node : layer.fullest;
}

bool InstructionTimes::IsDoneBefore(const LinkedEntry& entry) const {
  return entry.instruction->joins_last && TakesJoinedForms(plan_);
}

std::optional<ComputeUse> InstructionTimes::ComputeOf(const LinkedEntry& entry) const {
  if (IsDoneBefore(entry)) return std::nullopt;
  if (entry.instruction->op_class == OpClass::kState) return StateUseOf(*entry.instruction);
  if (entry.instruction->op_class == OpClass::kCompute) return ComputeUseOf(entry, Rows::kMean);
  return std::nullopt;
}

std::optional<CommunicationUse> InstructionTimes::CommunicationOf(const LinkedEntry& entry) const {
  if (!Communicates(*entry.instruction)) return std::nullopt;
  const bool exchange = entry.instruction->source->kind == OpKind::kExchange;
  return exchange ? ExchangeUseOf(entry) : CommunicationUseOf(entry, Rows::kMean);
}

InstructionTime InstructionTimes::Find(const LinkedEntry& entry) const {
  const LinkedInstruction& instruction = *entry.instruction;
  InstructionTime time{.launch = rates_.HostLaunch(instruction.source->kind).seconds};
  const auto set = [&](const Seconds& seconds) { time.seconds = seconds.seconds, time.known = seconds.known; };
  const auto measure = [&](Rows rows) {
    if (Communicates(instruction)) return rates_.Communication(CommunicationUseOf(entry, rows));
    Seconds seconds = rates_.Compute(ComputeUseOf(entry, rows));
    seconds.seconds *= rates_.Skew(instruction.source->kind, fullest_expert_);
    return seconds;
  };
  const auto communicate = [&](const CommunicationUse& use) { time.network = rates_.NetworkShare(use, time.seconds); };
  if (IsDoneBefore(entry)) return {};
  if (instruction.op_class == OpClass::kState) {
    set(rates_.Compute(StateUseOf(instruction)));
  } else if (instruction.source->kind == OpKind::kExchange) {
    const CommunicationUse use = ExchangeUseOf(entry);
    set(rates_.Communication(use));
    time.announce = std::min(time.seconds, rates_.Announcement(use));
    communicate(use);
  } else if (Communicates(instruction) || instruction.op_class == OpClass::kCompute) {
    set(measure(Rows::kMean));
    if (!Communicates(instruction)) time.flops = ComputeUseOf(entry, Rows::kMean).flops;
    if (HasSpread(entry)) {
      const double mean = time.seconds;
      set(measure(Rows::kMost));
      time.spread = std::max(0.0, time.seconds - mean);
    }
    if (Communicates(instruction)) communicate(CommunicationUseOf(entry, time.spread > 0 ? Rows::kMost : Rows::kMean));
  }
  return time;
}

double InstructionTimes::MostOf(const Size& size) const {
  return size.expert_rows ? std::max(size.most, size.mean * fullest_) : size.most;
}

double InstructionTimes::Elements(const ValueType& type, Rows rows) const {
  double elements = 1;
  for (const Dim& dim : type.dims) {
    if (const auto* number = std::get_if<int64_t>(&dim)) {
      elements *= static_cast<double>(std::max<int64_t>(0, *number));
    } else {
      const auto size = sizes_.find(std::get<std::string>(dim));
      if (size == sizes_.end()) return 0;
      elements *= rows == Rows::kMean ? size->second.mean : MostOf(size->second);
    }
  }
  return elements;
}

double InstructionTimes::Bytes(const ValueType* type, Rows rows) const {
  return type && !type->host ? Elements(*type, rows) * static_cast<double>(DTypeBytes(type->dtype)) : 0;
}

const ValueType* InstructionTimes::TypeOf(const LinkedEntry& entry, int operand) const {
  return operand < 0 ? nullptr : program_.calls()[entry.call].block->types[static_cast<size_t>(operand)];
}

double InstructionTimes::MostDocuments(const LinkedEntry& entry) const {
  if (!FlopsFollowDocuments(entry.instruction->source->kind)) return 1;
  const int module = program_.calls()[entry.call].block->module;
  return module < 0 ? 1 : most_documents_[static_cast<size_t>(module)];
}

bool InstructionTimes::HasSpread(const LinkedEntry& entry) const {
  if (MostDocuments(entry) > 1) return true;
  const auto spreads = [&](const ValueType* type) {
    return type && std::any_of(type->dims.begin(), type->dims.end(), [&](const Dim& dim) {
             const auto* name = std::get_if<std::string>(&dim);
             const auto size = name ? sizes_.find(*name) : sizes_.end();
             return size != sizes_.end() && MostOf(size->second) > size->second.mean;
           });
  };
  for (int input : entry.instruction->inputs) {
    if (spreads(TypeOf(entry, input))) return true;
  }
  const auto& outputs = entry.instruction->source->outputs;
  return std::any_of(outputs.begin(), outputs.end(), [&](const Output& output) { return spreads(&output.type); });
}

// Bytes of the storages that it reads, and of gradients that it adds to, which come and go.
double InstructionTimes::SlotBytes(const LinkedEntry& entry) const {
  const LinkedCall& call = program_.calls()[entry.call];
  if (call.slots < 0 || call.block->module < 0) return 0;
  const Module& module = plan_.modules[static_cast<size_t>(call.block->module)];
  double bytes = 0;
  const auto add = [&](int slot, double passes, DType dtype) {
    const int index = program_.blocks().storage(call.slots + slot);
    if (index < 0) return;
    double elements = 1;
    for (int64_t size : module.storages[static_cast<size_t>(index)].shape) elements *= static_cast<double>(size);
    bytes += passes * elements * static_cast<double>(DTypeBytes(dtype));
  };
  for (int slot : entry.instruction->parameters) add(slot, 1, plan_.dtype());
  for (int slot : entry.instruction->gradients) add(slot, 2, plan_.master());
  return bytes;
}

// executor/ops/fast/flash_attention.cc: what cuDNN's kernel does not take.
bool InstructionTimes::TakesFlash(const Instruction& instruction) const {
  if (!FlopsFollowDocuments(instruction.kind)) return false;
  const int64_t* head_dim = instruction.FindInteger("head_dim");
  return instruction.over_cp() || plan_.data.packed_documents || plan_.deterministic || (head_dim && *head_dim > 128);
}

ComputeUse InstructionTimes::ComputeUseOf(const LinkedEntry& entry, Rows rows) const {
  const LinkedInstruction& instruction = *entry.instruction;
  ComputeUse use{.kind = instruction.source->kind, .dtype = plan_.dtype()};
  use.flash = TakesFlash(*instruction.source);
  const int module = program_.calls()[entry.call].block->module;
  const double samples = module < 0 ? 1 : ranks_.of_planned[static_cast<size_t>(module)];
  if (samples == 0) return use;  // without a sample there is nothing to compute
  double mean = 0;
  const auto add = [&](const ValueType* type) {
    use.bytes += Bytes(type, rows);
    mean += Bytes(type, Rows::kMean);
  };
  for (int input : instruction.inputs) add(TypeOf(entry, input));
  for (const Output& output : instruction.source->outputs) add(&output.type);
  const bool joined = instruction.joins_next && TakesJoinedForms(plan_);
  if (joined) {
    // The value between them is not read, and if it dies not written.
    const LinkedInstruction& next = *NextOf(entry).instruction;
    const int between = instruction.outputs.front();
    for (int input : next.inputs) add(input == between ? nullptr : TypeOf(entry, input));
    for (const Output& output : next.source->outputs) add(&output.type);
    if (JoinOf(*instruction.source, *next.source) == Join::kPasses)
      use.bytes -= Bytes(TypeOf(entry, between), rows), mean -= Bytes(TypeOf(entry, between), Rows::kMean);
  }
  if (instruction.number < program_.blocks().instructions()) use.flops = samples * costs_.flops(instruction);
  // FLOPs of experts grow with their rows, as their values do.
  if (rows == Rows::kMost && mean > 0) use.flops *= use.bytes / mean;
  if (rows == Rows::kMost) use.flops *= MostDocuments(entry);
  use.bytes += SlotBytes(entry);
  if (joined) use.bytes += SlotBytes(NextOf(entry));
  return use;
}

// Bytes that change in buckets, of this rank.
ComputeUse InstructionTimes::StateUseOf(const LinkedInstruction& instruction) const {
  ComputeUse use{.kind = instruction.source->kind, .dtype = plan_.dtype()};
  const auto wide = static_cast<double>(DTypeBytes(plan_.master()));
  if (use.kind == OpKind::kBeginStep) {  // zeroes gradients, but for those that the step writes first
    const FirstAdditions additions(program_);
    for (size_t m = 0; m < plan_.modules.size(); ++m) {
      const Module& module = plan_.modules[m];
      if (!module.grid.contains(ranks_.first_rank())) continue;
      const int stage = CoordinateOf(module.grid, ranks_.first_rank(), Axis::kPp);
      for (size_t i = 0; i < module.storages.size(); ++i) {
        const Storage& storage = module.storages[i];
        if (storage.stage == stage && storage.bucket >= 0 && !additions.IsWritten(m, i))
          use.bytes += wide * static_cast<double>(ElementsOf(storage.shape));
      }
    }
    return use;
  }
  const int64_t* index = instruction.source->FindInteger("bucket");
  if (!index || instruction.module < 0) return use;
  const std::vector<Bucket>& buckets = plan_.modules[static_cast<size_t>(instruction.module)].buckets;
  if (*index < 0 || *index >= static_cast<int64_t>(buckets.size())) return use;
  const Bucket& bucket = buckets[static_cast<size_t>(*index)];
  const double shard = static_cast<double>(bucket.elements) / std::max(1, bucket.shards);
  // GPUs scale what the next two read, on the way (executor/optimizer/optimizer.h).
  if (use.kind == OpKind::kScaleGradients && plan_.cluster.gpu == "none") use.bytes = 2 * wide * shard;
  if (use.kind == OpKind::kSquareNorm) use.bytes = wide * shard;
  // AdamW reads and writes master and both moments, reads the gradient, and writes the weight.
  if (use.kind == OpKind::kAdamW) use.bytes = (7 * wide + static_cast<double>(DTypeBytes(bucket.dtype))) * shard;
  return use;
}

CommunicationUse InstructionTimes::CommunicationUseOf(const LinkedEntry& entry, Rows rows) const {
  const LinkedInstruction& instruction = *entry.instruction;
  CommunicationUse use{.kind = instruction.source->kind};
  if (instruction.group < 0) return use;
  const Members& members = uses_.MembersOf(instruction.group, ranks_.first_rank());
  use.members = members.all, use.per_node = members.on_fullest_node, use.nodes = members.nodes;
  const ValueType* input = instruction.inputs.empty() ? nullptr : TypeOf(entry, instruction.inputs.front());
  const auto& outputs = instruction.source->outputs;
  const double out = outputs.empty() ? 0 : Bytes(&outputs.front().type, rows);
  switch (use.kind) {
    case OpKind::kReduceScatter:
    case OpKind::kReduceScatterV: use.bytes = out * use.members; break;
    case OpKind::kScatterTokens: {
      // Its terms are wide.
      const double wide = input ? static_cast<double>(DTypeBytes(input->dtype)) : 0;
      use.bytes = outputs.empty() ? 0 : Elements(outputs.front().type, rows) * wide * use.members;
      break;
    }
    case OpKind::kAllToAll:
    case OpKind::kReshard: use.bytes = Bytes(input, rows); break;
    case OpKind::kAllToAllV: use.bytes = std::max(Bytes(input, rows), out); break;  // what it sends and receives
    default: use.bytes = out;
  }
  return use;
}

CommunicationUse InstructionTimes::ExchangeUseOf(const LinkedEntry& entry) const {
  const LinkedInstruction& instruction = *entry.instruction;
  CommunicationUse use{.kind = OpKind::kExchange};
  double sent = 0, received = 0;
  size_t output = 0;
  for (size_t p = 0; p < instruction.parts.size(); ++p) {
    const LinkedExchangePart& linked = instruction.parts[p];
    const ExchangePart& part = instruction.source->parts[p];
    const auto& outputs = instruction.source->outputs;
    const ValueType* type = part.send                 ? TypeOf(entry, linked.value)
                            : output < outputs.size() ? &outputs[output++].type
                                                      : nullptr;
    double bytes = Bytes(type, Rows::kMean);
    bool leaves_node = false;
    if (linked.bridge >= 0) {
      const Crossing& crossing = uses_.CrossingOf(linked.bridge, part.backward, ranks_.first_rank());
      const Bridge& bridge = plan_.bridges[static_cast<size_t>(linked.bridge)];
      // The value has the rows of all samples of this rank's lane.
      const std::string& side = part.send != part.backward ? bridge.from : bridge.to;
      int64_t samples = 0;
      for (size_t m = 0; m < plan_.modules.size(); ++m)
        samples += plan_.modules[m].name == side ? ranks_.samples[m] : 0;
      const bool takes_part = samples > 0 && (part.send ? crossing.sent : crossing.received) > 0;
      bytes *= takes_part ? static_cast<double>(crossing.busiest) / static_cast<double>(samples) : 0;
      leaves_node = crossing.leaves_node;
    } else if (linked.group >= 0) {
      const Module* module = plan_.FindModule(plan_.groups[static_cast<size_t>(linked.group)].module);
      const int stage = module ? module->grid.ranks() / std::max(1, module->grid.pp) : 0;
      leaves_node = !uses_.SameNode(ranks_.first_rank(), ranks_.first_rank() + part.shift * stage);
    }
    (part.send ? sent : received) += bytes;
    if (bytes > 0) use.members = 2, use.nodes = std::max(use.nodes, leaves_node ? 2 : 1);
  }
  use.bytes = std::max(sent, received);
  use.sends_only = sent > 0 && received == 0;
  use.per_node = use.nodes > 1 ? 1 : use.members;
  return use;
}

}  // namespace planwright
