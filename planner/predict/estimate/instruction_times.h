// How long each instruction of a step takes on one class of ranks, and what that is estimated from: the formulas of
// docs/step_time.md#instructions.
#pragma once

#include <optional>
#include <vector>

#include "planner/plan/link/linked_program.h"
#include "planner/predict/estimate/communication_uses.h"
#include "planner/predict/estimate/expert_rows.h"
#include "planner/predict/estimate/instruction_costs.h"
#include "planner/predict/estimate/rank_classes.h"
#include "planner/predict/rates/rates.h"

namespace planwright {

struct InstructionTime {
  // Of a stream, on the rank of its role to which most rows of experts or of images come, or most scores of documents.
  double seconds = 0;
  double spread = 0;    // how much of it a rank with the mean number of rows is done earlier
  double flops = 0;     // at the mean
  double launch = 0;    // of the host
  double announce = 0;  // of a communication: Rates::Announcement, a part of `seconds`
  double network = 0;   // of a communication: Rates::NetworkShare
  Known known = Known::kEstimated;
};

class InstructionTimes {
 public:
  // `costs`: of the program's blocks. `rows`: of experts, by layer; null: as the plan expects them (moe.imbalance).
  // Keeps references.
  InstructionTimes(const LinkedProgram& program, const InstructionCosts& costs, const Rates& rates,
                   CommunicationUses& uses, const RankClass& ranks, const ExpertRows* rows = nullptr);

  // What an entry is a use of, with the mean number of rows; nullopt: it is of another class, or it is done as one with
  // the entry before it (planner/plan/link/joins.def), which then has the time and the bytes of both. A communication
  // that no other rank takes part in has one member.
  std::optional<ComputeUse> ComputeOf(const LinkedEntry& entry) const;
  std::optional<CommunicationUse> CommunicationOf(const LinkedEntry& entry) const;
  // Whether it is done as one with the entry before it, where a form takes them.
  bool IsDoneBefore(const LinkedEntry& entry) const;

  // Of an entry of the program. A block's instruction takes as long in each layer and microbatch: it is looked at once;
  // where layers have other rows of experts, once for each layer. The reference is valid until the next call.
  const InstructionTime& of(const LinkedEntry& entry) { return kinds_[KindOf(entry)]; }
  // The same number for all entries that were looked at together. They count from 0 as they come.
  uint32_t KindOf(const LinkedEntry& entry);

 private:
  // How many rows of experts and of images there are, and how many scores within documents.
  enum class Rows { kMean, kMost };

  InstructionTime Find(const LinkedEntry& entry) const;
  // How many times the mean number of rows the one has that others wait for.
  double FullestOf(const LayerRows& layer, const LinkedInstruction& instruction) const;
  const LayerRows* RowsOf(const LinkedEntry& entry) const;  // null: its layer has no rows of its own
  double Elements(const ValueType& type, Rows rows) const;
  double Bytes(const ValueType* type, Rows rows) const;  // 0 for none, and for one in host memory
  const ValueType* TypeOf(const LinkedEntry& entry, int operand) const;
  // How many times the mean number of scores within documents the lane has that others wait for.
  double MostDocuments(const LinkedEntry& entry) const;
  bool HasSpread(const LinkedEntry& entry) const;
  bool TakesFlash(const Instruction& instruction) const;  // of causal attention on a GPU
  ComputeUse ComputeUseOf(const LinkedEntry& entry, Rows rows) const;
  ComputeUse StateUseOf(const LinkedInstruction& instruction) const;
  double SlotBytes(const LinkedEntry& entry) const;
  CommunicationUse CommunicationUseOf(const LinkedEntry& entry, Rows rows) const;
  CommunicationUse ExchangeUseOf(const LinkedEntry& entry) const;

  const LinkedProgram& program_;
  const Plan& plan_;
  const InstructionCosts& costs_;
  const Rates& rates_;
  CommunicationUses& uses_;
  const RankClass& ranks_;
  // Of a symbol.
  struct Size {
    double mean = 0, most = 0;
    bool expert_rows = false;
  };
  double MostOf(const Size& size) const;

  std::map<std::string, Size, std::less<>> sizes_;
  std::vector<double> most_documents_;       // by module
  std::vector<const LayerRows*> by_frame_;   // empty: no layer has rows of its own
  double fullest_ = 1, fullest_expert_ = 1;  // of the layer that is looked at
  std::vector<InstructionTime> kinds_;
  std::vector<int> by_number_;  // by LinkedInstruction::number: its kind; -1: not known yet
  std::map<std::pair<int, const LayerRows*>, int> by_layer_;  // the same where layers have rows of their own
};

}  // namespace planwright
